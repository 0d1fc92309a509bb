"""The sandbox on Linux: bubblewrap, control groups and seccomp."""
