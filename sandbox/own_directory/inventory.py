"""The files of a directory that programs outside the sandbox run: the result of a scan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Kind = Literal["protected", "listed", "git", "repository", "packages"]


class Item(NamedTuple):
    """`why` describes the program that runs it; `stamp` changes with its content."""

    kind: Kind
    why: str
    stamp: str


class Change(NamedTuple):
    """A new or changed file that programs outside the sandbox run."""

    path: str
    """Relative to the directory."""
    what: Literal["created", "changed", "committed"]
    why: str

    def as_dict(self) -> dict[str, str]:
        return self._asdict()


@dataclass(slots=True)
class Inventory:
    """All paths are relative to the directory, with slashes; "" is the directory itself."""

    items: dict[str, Item] = field(default_factory=dict)
    read_only: set[str] = field(default_factory=set)
    """Files and directories that commands must not change. They are never links."""
    repositories: set[str] = field(default_factory=set)
    """Git directories, in which commands may change all but a few files."""
    history: dict[str, list[str]] = field(default_factory=dict)
    """For each repository, a stamp of its index and the commits that its refs name."""
    incomplete: list[str] = field(default_factory=list)
    """Paths that were not scanned, each with the reason."""

    def to_json(self) -> dict[str, Any]:
        """The part that `changes_since` needs."""
        return {
            "items": {path: list(item) for path, item in self.items.items()},
            "history": self.history,
            "incomplete": self.incomplete,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Inventory:
        items = {path: Item(*fields) for path, fields in data["items"].items()}
        history = {path: list(known) for path, known in data["history"].items()}
        return cls(items, history=history, incomplete=list(data["incomplete"]))


def changes_since(before: Inventory, after: Inventory) -> list[Change]:
    """Return the new and changed items, by path.

    A new repository in a subdirectory counts only if it makes git run a program. At the top it
    always counts, because it replaces the repository that the directory belongs to.
    """
    found = []
    for path, item in sorted(after.items.items()):
        old = before.items.get(path)
        if old is None and _is_unremarkable(path, item):
            continue
        if old is None:
            found.append(Change(path, "created", item.why))
        elif old.stamp != item.stamp:
            found.append(Change(path, "changed", item.why))
    return found


def _is_unremarkable(path: str, item: Item) -> bool:
    """A repository in a subdirectory, or a submodule or worktree inside another repository."""
    return item.kind == "repository" and (path.endswith("/.git") or ".git" in path.split("/")[:-1])


def is_below(path: str, directories: Iterable[str]) -> bool:
    """Whether `path` is one of the directories, or is in one."""
    return any(path == top or path.startswith(f"{top}/") for top in directories)
