"""Snapshots: the files of a workspace after each change, stored, compared and restored.

The store is in a directory that commands cannot see. The workspace is hostile: every walk uses
directory descriptors, follows no link, opens only regular files, and has limits of files, bytes and
time. Files beyond a limit are listed as not kept.
"""

from sandbox.snapshots.manifest import Manifest, Node, SnapshotLimits
from sandbox.snapshots.restore import Restored, restore
from sandbox.snapshots.store import (
    Change,
    ChangeCounts,
    SnapshotLost,
    SnapshotStore,
    Taken,
    compare,
    count_changes,
)

__all__ = [
    "Change",
    "ChangeCounts",
    "Manifest",
    "Node",
    "Restored",
    "SnapshotLimits",
    "SnapshotLost",
    "SnapshotStore",
    "Taken",
    "compare",
    "count_changes",
    "restore",
]
