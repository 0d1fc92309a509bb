"""The tree of a thread's files."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.backends import FileBackend
from sandbox.backends.limits import FileLimits, WalkLimit
from sandbox.errors import FileError

MOST_FILES = 1_000
MOST_DEPTH = 10
LIMITS = FileLimits(search_entries=5_000, search_seconds=2.0)


@dataclass(slots=True)
class Node:
    """A directory (with `children`) or a file (with `size` in bytes, None if unknown)."""

    name: str
    path: str
    is_directory: bool
    size: int | None = None
    children: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FileTree:
    """The files of a directory. `is_cut`: it may have more files than are listed."""

    top: Node
    is_cut: bool


def tree_of(backend: FileBackend, top: str = "/") -> FileTree:
    """Return the files below `top`, sorted by name, directories first.

    Omits links, names that are not UTF-8, and levels below `MOST_DEPTH`. Stops at `MOST_FILES`
    files and directories. A missing directory is empty.
    """
    walk_limit = WalkLimit(LIMITS)
    root = Node("", top, is_directory=True)
    nodes = {top.rstrip("/") or "/": root}
    count = 0
    try:
        for entry in backend.walk(top, walk_limit, depth=MOST_DEPTH):
            if not entry.addressable or entry.type not in ("file", "directory"):
                continue
            if count == MOST_FILES:
                walk_limit.cut_short("too many files")
                break
            count += 1
            node = Node(entry.name, entry.path, entry.type == "directory")
            if not node.is_directory:
                found = backend.stat(entry.path)
                node.size = found.size if found else None
            nodes[entry.path] = node
            above = nodes.get(entry.parent.rstrip("/") or "/", root)
            above.children.append(node)
    except FileError:
        pass  # no directory
    for node in nodes.values():
        node.children.sort(key=lambda child: (not child.is_directory, child.name))
    return FileTree(root, walk_limit.cut is not None)
