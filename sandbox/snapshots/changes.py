"""The differences between two snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.snapshots.manifest import Manifest, Node


@dataclass(frozen=True, slots=True)
class Change:
    """One path that was added, changed or deleted; `before` or `after` is None if it is missing.

    `path` may contain any characters, including line breaks and surrogates for invalid UTF-8.
    """

    path: str
    before: Node | None
    after: Node | None

    @property
    def what(self) -> str:
        if self.before is None:
            return "added"
        return "deleted" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    added: int = 0
    changed: int = 0
    deleted: int = 0


def compare(before: Manifest, after: Manifest) -> list[Change]:
    """Return the changes by path. A path counts as unchanged if one of the two did not scan it."""
    changes = []
    for path in sorted(before.nodes.keys() | after.nodes.keys()):
        old, new = before.nodes.get(path), after.nodes.get(path)
        if old == new:
            continue
        if old is None and before.cut_above(path):
            continue
        if new is None and after.cut_above(path):
            continue
        if old is not None and new is not None and _only_kept_differently(old, new):
            continue
        changes.append(Change(path, old, new))
    return changes


def count_changes(before: Manifest, after: Manifest) -> ChangeCounts:
    found = [change.what for change in compare(before, after)]
    return ChangeCounts(found.count("added"), found.count("changed"), found.count("deleted"))


def _only_kept_differently(old: Node, new: Node) -> bool:
    """Whether it is the same file or directory, once within the limits and once not."""
    if old.kind != new.kind or bool(old.reason) == bool(new.reason):
        return False
    return old.size == new.size and old.mode == new.mode
