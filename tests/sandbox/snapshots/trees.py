"""A workspace with a store, and helpers to examine both."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.snapshots import (
    Change,
    Restored,
    SnapshotLimits,
    SnapshotStore,
    Taken,
    compare,
    restore,
)


@dataclass
class Place:
    """`work` is the area `workspace`; `take` keeps it, `go_to` restores a state of it."""

    root: Path
    store: SnapshotStore

    @property
    def areas(self) -> dict[str, Path]:
        return {"workspace": self.root / "workspace", "outputs": self.root / "outputs"}

    @property
    def work(self) -> Path:
        return self.root / "workspace"

    def take(self) -> Taken:
        return self.store.take(self.areas)

    def changes(self, taken: Taken) -> list[Change]:
        return compare(self.store.load(taken.base), self.store.load(taken.manifest))

    def what_changed(self, taken: Taken) -> dict[str, str]:
        return {change.path: change.what for change in self.changes(taken)}

    def go_to(self, digest: str) -> Restored:
        now = self.take().manifest
        with self.store.lock:
            return restore(
                self.store, self.areas, self.store.load(now), self.store.load(digest), None
            )

    def reason(self, path: str) -> str:
        head = self.store.take(self.areas).manifest
        return self.store.load(head).nodes[path].reason


def make_place(place: Path, /, **limits: object) -> Place:
    for area in ("workspace", "outputs"):
        (place / "files" / area).mkdir(parents=True)
    store = SnapshotStore(place / "store", SnapshotLimits(**limits))  # type: ignore[arg-type]
    return Place(place / "files", store)


def contents(directory: Path) -> dict[str, object]:
    """Return everything below a directory: bytes of files, targets of links, with their modes."""
    found: dict[str, object] = {}
    for path in sorted(directory.rglob("*")):
        name = os.fspath(path.relative_to(directory))
        mode = path.lstat().st_mode
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_file():
            found[name] = (oct(mode), path.read_bytes())
        else:
            found[name] = oct(mode)
    return found


_SWAP = """
import ctypes, sys
swap = ctypes.CDLL(None).renameat2
one, other = (name.encode() for name in sys.argv[1:])
print("ready", flush=True)
while True:
    for _ in range(1000):
        swap(-100, one, -100, other, 2)
"""


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Let another process exchange the two names several hundred thousand times per second."""
    command = [sys.executable, "-c", _SWAP, os.fspath(one), os.fspath(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()
