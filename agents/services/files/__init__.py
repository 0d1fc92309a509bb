"""The files of a thread: workspaces, uploads, snapshots and copies."""
