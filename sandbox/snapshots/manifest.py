"""The list of the files of a snapshot. It names their contents by hashes."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

MAX_ENCODED_BYTES = 64 * 1024**2
"""Manifests within the limits are not longer; a longer one is damaged."""


class Node(NamedTuple):
    """One name in the tree.

    `kind` is file, directory, link or other (FIFO, socket, device). `mode` is the permission bits,
    `size` the bytes of a file. `content` is a file's SHA-256 in hex, or a link's target. `reason`
    says why the content of the file or directory was not kept; a file's `content` is then made of
    its inode and its modification time.
    """

    kind: str
    mode: int
    size: int = 0
    content: str = ""
    reason: str = ""


class Manifest:
    """The list of all entries of a snapshot. `nodes` maps their paths to their data.

    A path is the area, a slash, and the path in the area; it does not start with a slash. Names
    that are not UTF-8 contain surrogates, as with `os.fsdecode`.
    """

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes

    @cached_property
    def encoded(self) -> bytes:
        """Return the list as JSON. The same nodes always give the same bytes."""
        rows = [[path, *self.nodes[path]] for path in sorted(self.nodes)]
        return json.dumps(rows, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.encoded).hexdigest()

    def packed(self) -> bytes:
        return zlib.compress(self.encoded, 1)

    @classmethod
    def unpacked(cls, data: bytes) -> Manifest:
        """Return the list that `packed` encoded. Raises ValueError for other data."""
        unpacker = zlib.decompressobj()
        try:
            encoded = unpacker.decompress(data, MAX_ENCODED_BYTES)
            rows = json.loads(encoded)
            found = cls({path: Node(*fields) for path, *fields in rows})
        except (zlib.error, TypeError, UnicodeDecodeError) as error:
            raise ValueError(str(error)) from error
        found.encoded = encoded
        return found

    def contents(self) -> set[str]:
        """Return the hashes of all kept files."""
        return {node.content for node in self.nodes.values() if is_kept_file(node)}

    @property
    def is_complete(self) -> bool:
        return not any(node.reason for node in self.nodes.values())

    def over_limits(self) -> list[str]:
        """Return the paths that were not kept because of a limit, or because they cannot be read.

        Excludes sockets and the like, and directories that snapshots always omit.
        """
        return [
            path
            for path, node in self.nodes.items()
            if node.reason and node.kind != "other" and not is_left_out(path)
        ]

    def cut_above(self, path: str) -> bool:
        """Return whether a directory above `path` was not scanned, so its contents are unknown."""
        parts = path.split("/")
        for end in range(1, len(parts)):
            above = self.nodes.get("/".join(parts[:end]))
            if above is not None and above.kind == "directory" and above.reason:
                return True
        return False


def is_kept_file(node: Node) -> bool:
    return node.kind == "file" and not node.reason


def is_left_out(path: str) -> bool:
    """Return whether snapshots always omit a directory with this name."""
    return path.rpartition("/")[2] in LEFT_OUT


LEFT_OUT = frozenset({"node_modules", "__pycache__", ".venv"})
"""Directories that tools fill repeatedly; their files would displace the files of people."""


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Limits of a snapshot: sizes in bytes, times in seconds.

    Files beyond a limit are listed as not kept.
    """

    entries: int = 20_000
    """The number of names in all directories together."""
    directory: int = 10_000
    """The number of names in one directory. A larger directory is not scanned."""
    depth: int = 60
    """The maximum depth of nested directories. Each level needs a descriptor during the walk."""
    file_bytes: int = 16 * 1024**2
    """The size of the largest file that is kept."""
    read_bytes: int = 256 * 1024**2
    """The number of bytes that one snapshot reads of new or changed files."""
    seconds: float = 5.0
    names: int = 4 * 1024**2
    """The number of characters in all paths and link targets together."""
