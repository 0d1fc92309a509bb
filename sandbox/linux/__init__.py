"""The sandbox of Linux: bubblewrap, control groups and seccomp."""
