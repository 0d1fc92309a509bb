"""An archive contains the workspace, no files of the host, and no member that could escape."""

from __future__ import annotations

import os
import tarfile
import threading
import tracemalloc
from pathlib import Path

import pytest

from sandbox.directories.archive import write_archive
from tests.support.tar_files import extract

SECRET = b"the host's own secret"


def archived(tmp_path: Path, work: Path) -> tuple[tarfile.TarFile, dict[str, str]]:
    target = tmp_path / "out.tar.gz"
    done = write_archive({"workspace": work}, target)
    return tarfile.open(target), dict(done.left_out)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_an_archive_contains_the_workspace(tmp_path: Path, work: Path) -> None:
    (work / "d").mkdir()
    (work / "d" / "a\nb").write_text("odd name")
    with open(os.path.join(os.fsencode(work), b"\xff"), "wb") as stream:
        stream.write(b"not UTF-8")
    (work / "tool").write_text("#!/bin/sh")
    (work / "tool").chmod(0o6755)
    (work / "link").symlink_to("d/a")
    archive, left_out = archived(tmp_path, work)
    out = tmp_path / "out"
    with archive:
        extract(archive, out)
    assert left_out == {}
    assert (out / "workspace" / "d" / "a\nb").read_text() == "odd name"
    assert os.path.exists(os.path.join(os.fsencode(out), b"workspace/\xff"))
    assert (out / "workspace" / "tool").stat().st_mode & 0o7777 == 0o755
    assert os.readlink(out / "workspace" / "link") == "d/a"
    assert (tmp_path / "out.tar.gz").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../../../etc/passwd", "..", "d/../../../x", "here/.."]
)
def test_links_that_could_escape_are_left_out(tmp_path: Path, work: Path, target: str) -> None:
    (work / "here").symlink_to(".")
    (work / "link").symlink_to(target)
    archive, left_out = archived(tmp_path, work)
    with archive:
        assert left_out == {"workspace/link": "a link that could lead out"}
        extract(archive, tmp_path / "out")


def test_pipes_and_huge_files_are_left_out(tmp_path: Path, work: Path) -> None:
    os.mkfifo(work / "pipe")
    with open(work / "sparse", "wb") as stream:
        stream.truncate(1 << 40)
    archive, left_out = archived(tmp_path, work)
    archive.close()
    assert set(left_out) == {"workspace/pipe", "workspace/sparse"}


def test_a_tree_that_changes_concurrently_gives_a_complete_archive(
    tmp_path: Path, work: Path
) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    (work / "shrinks").write_bytes(b"x" * 3_000_000)
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            spare = work / "spare"
            if number % 2:
                spare.symlink_to(tmp_path / "secret")
            else:
                spare.write_text("fine")
            os.replace(spare, work / "victim")
            os.truncate(work / "shrinks", 0 if number % 2 else 3_000_000)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for number in range(30):
            target = tmp_path / f"{number}.tar.gz"
            write_archive({"workspace": work}, target)
            with tarfile.open(target) as archive:
                for member in archive:
                    stream = archive.extractfile(member) if member.isreg() else None
                    assert stream is None or SECRET not in stream.read()
    finally:
        stop.set()
        thread.join()


def test_an_existing_archive_is_not_replaced(tmp_path: Path, work: Path) -> None:
    (tmp_path / "out.tar.gz").write_text("mine")
    with pytest.raises(FileExistsError):
        write_archive({"workspace": work}, tmp_path / "out.tar.gz")
    assert (tmp_path / "out.tar.gz").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.tar.gz", "work"]


def test_memory_does_not_grow_with_the_number_of_files(tmp_path: Path, work: Path) -> None:
    """An earlier version kept 400 bytes for each file that it had written."""
    for number in range(3_000):
        (work / str(number)).touch()
    tracemalloc.start()
    try:
        done = write_archive({"workspace": work}, tmp_path / "out.tar.gz")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert done.files == 3_000
    assert peak < 1_000_000
