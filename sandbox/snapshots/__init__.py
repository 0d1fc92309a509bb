"""What a workspace's files were after each change: kept cheaply, compared, and put back.

The store lies outside of what commands can see. The workspace belongs to somebody hostile: every
walk goes from directory descriptors, follows no link, opens nothing but regular files, and is
bounded in files, bytes and time. What is over a bound is listed as not kept.
"""

from sandbox.snapshots.changes import Change, ChangeCounts, compare, count_changes
from sandbox.snapshots.limits import SnapshotLimits
from sandbox.snapshots.manifest import Manifest, Node
from sandbox.snapshots.restore import Restored, restore
from sandbox.snapshots.store import SnapshotLost, SnapshotStore, Taken

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
