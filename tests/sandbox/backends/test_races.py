"""Nothing outside is read or written, even if the tree changes between two system calls."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandbox.backends import TreeBackend
from sandbox.directories.beneath import WalkResolver
from tests.sandbox.backends.subjects import Subject
from tests.sandbox.backends.test_attacks import SECRET, outside, place

__all__ = ["outside"]

READS = 3000
AT_FDCWD = -100
RENAME_EXCHANGE = 2


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Exchange the two names in one system call, as fast as a thread can."""
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            if renameat2(AT_FDCWD, bytes(one), AT_FDCWD, bytes(other), RENAME_EXCHANGE) != 0:
                raise OSError(ctypes.get_errno(), "renameat2")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_file_swapped_for_a_link_leaks_nothing(on_disk: Subject, outside: Path) -> None:
    file, evil = place(on_disk) / "file", place(on_disk) / "evil"
    file.write_text("harmless")
    os.symlink(outside / "secret.txt", evil)
    seen = Counter[str]()

    with swapping(file, evil):
        while seen.total() < READS or len(seen) < 2:
            seen[shown(on_disk.backend.read_file(on_disk.at("file")))] += 1

    assert set(seen) == {"refused", "     1 | harmless"}


def test_a_directory_swapped_for_a_link_leaks_nothing(on_disk: Subject, outside: Path) -> None:
    directory, evil = place(on_disk) / "dir", place(on_disk) / "evil"
    directory.mkdir()
    (directory / "secret.txt").write_text("harmless")
    os.symlink(outside, evil)
    seen = Counter[str]()

    with swapping(directory, evil):
        while seen.total() < READS or len(seen) < 2:
            seen[shown(on_disk.backend.read_file(on_disk.at("dir/secret.txt")))] += 1
            if seen.total() % 4 == 0:
                for match in on_disk.backend.grep("e", on_disk.home)["matches"]:
                    seen[f"     1 | {match['content']}"] += 1

    assert set(seen) == {"refused", "     1 | harmless"}


def test_a_directory_swapped_for_a_link_is_not_written_through(
    on_disk: Subject, outside: Path
) -> None:
    directory, evil = place(on_disk) / "dir", place(on_disk) / "evil"
    directory.mkdir()
    os.symlink(outside, evil)
    written = Counter[bool]()

    with swapping(directory, evil):
        while written.total() < READS // 2 or len(written) < 2:
            path = on_disk.at(f"dir/new{written.total() % 500}/file.txt")
            written["error" not in on_disk.backend.write_file(path, "x")] += 1

    assert os.listdir(outside) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET


class PlantingResolver(WalkResolver):
    """A link appears immediately after a directory was found missing."""

    def __init__(self, name: Path, target: Path) -> None:
        self._name = name
        self._target = target

    def open(self, root: int, parts: Sequence[str], flags: int) -> int:
        try:
            return super().open(root, parts, flags)
        except FileNotFoundError:
            self._name.symlink_to(self._target)
            raise


def test_a_link_planted_where_a_directory_is_made_is_not_followed(
    tmp_path: Path, outside: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    backend = TreeBackend(root, resolver=PlantingResolver(root / "new", outside))

    assert list(backend.write_file("new/file.txt", "x")) == ["error"]
    assert (root / "new").is_symlink()
    assert os.listdir(outside) == ["secret.txt"]


def test_a_file_swapped_for_a_fifo_never_blocks_the_reader(on_disk: Subject) -> None:
    file, evil = place(on_disk) / "file", place(on_disk) / "evil"
    file.write_text("harmless")
    os.mkfifo(evil)
    seen = Counter[str]()

    with swapping(file, evil):
        while seen.total() < READS or len(seen) < 2:
            seen[shown(on_disk.backend.read_file(on_disk.at("file")))] += 1

    assert set(seen) == {"refused", "     1 | harmless"}


def shown(result: dict[str, str]) -> str:
    return result.get("content", "refused")
