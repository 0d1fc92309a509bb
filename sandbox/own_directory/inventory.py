"""The result of a scan: files that programs outside the sandbox run or load, such as git hooks.

The first inventory of a run is stored on disk until the report at the end of the run is complete:
several processes may execute a run, one after the other, and a process may die.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

Kind = Literal["protected", "listed", "git", "repository", "packages"]


class Item(NamedTuple):
    """A file that a program runs. `why` describes the program; `stamp` changes with the content."""

    kind: Kind
    why: str
    stamp: str


class Change(NamedTuple):
    """A new or changed file that programs outside the sandbox run."""

    path: str
    """The path of the file, relative to the directory."""
    what: Literal["created", "changed", "committed"]
    why: str

    def as_dict(self) -> dict[str, str]:
        return self._asdict()


@dataclass(slots=True)
class Inventory:
    """The result of a scan of a directory.

    All paths are relative to the directory, with slashes; "" is the directory itself.
    """

    items: dict[str, Item] = field(default_factory=dict)
    read_only: set[str] = field(default_factory=set)
    """Files and directories that commands must not change. None of them is a link."""
    repositories: set[str] = field(default_factory=set)
    """Git directories, in which commands may change all but a few files."""
    history: dict[str, list[str]] = field(default_factory=dict)
    """For each repository, a stamp of its index and the commits that its refs name."""
    incomplete: list[str] = field(default_factory=list)
    """Paths that were not scanned, each with the reason."""

    def to_json(self) -> dict[str, Any]:
        """Return the part of the inventory that `changes_since` needs."""
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
    """Return the new and changed items, sorted by path, without deleted ones.

    A new repository in a subdirectory counts only if it makes git run a program. A new repository
    at the top always counts, because it replaces the repository that the directory belongs to.
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
    """Return whether a new item is a repository that needs no report.

    That is a repository in a subdirectory, or a submodule or worktree inside another repository.
    """
    return item.kind == "repository" and (path.endswith("/.git") or ".git" in path.split("/")[:-1])


def is_below(path: str, directories: Iterable[str]) -> bool:
    """Return whether `path` is one of the directories, or is in one."""
    return any(path == top or path.startswith(f"{top}/") for top in directories)


def keep_baseline(file: Path, found: Inventory) -> None:
    """Store the inventory, unless `file` has an earlier one. Raises OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}-{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w") as stream:
            json.dump(found.to_json(), stream)  # ASCII, because paths may contain lone surrogates
        os.link(temporary, file)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)


def read_baseline(file: Path) -> Inventory | None:
    """Return the stored inventory, or None if there is none.

    Raises OSError, and ValueError if the file is damaged.
    """
    try:
        data = json.loads(file.read_text())
        return Inventory.from_json(data)
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error
