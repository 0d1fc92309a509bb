"""A hostile workspace costs limited time and disk, exposes no host files, and raises no error."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from sandbox.snapshots import Manifest, SnapshotLimits
from sandbox.snapshots.scan import Scan
from tests.sandbox.snapshots.trees import make_place, swapping

SECRET = b"the host's own secret"


def stored_anywhere(directory: Path, data: bytes) -> bool:
    return any(data in path.read_bytes() for path in directory.rglob("*") if path.is_file())


def test_links_are_kept_as_links_and_not_followed(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "secret").write_bytes(SECRET)
    (place.work / "file").symlink_to(tmp_path / "host" / "secret")
    (place.work / "directory").symlink_to(tmp_path / "host")
    (place.work / "circle").symlink_to("circle")
    taken = place.take()
    assert set(place.what_changed(taken)) >= {"workspace/file", "workspace/directory"}
    assert not any(path.startswith("workspace/directory/") for path in place.what_changed(taken))
    assert not stored_anywhere(tmp_path / "store", SECRET)


def test_fifos_and_sockets_are_listed_and_not_opened(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    os.mkfifo(place.work / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        directory = os.open(place.work, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{directory}/socket")
        os.close(directory)
        place.take()
    assert "FIFO" in place.reason("workspace/pipe")
    assert "socket" in place.reason("workspace/socket")


@pytest.mark.parametrize("planted", ["link", "fifo"])
def test_a_file_that_becomes_something_else_while_it_is_walked(
    tmp_path: Path, planted: str
) -> None:
    place = make_place(tmp_path)
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    (place.work / "victim").write_text("harmless")
    if planted == "link":
        (place.work / "spare").symlink_to(secret)
    else:
        os.mkfifo(place.work / "spare")
    kinds = set()
    with swapping(place.work / "victim", place.work / "spare"):
        for _ in range(500):
            nodes = place.store.load(place.take().manifest).nodes
            kinds |= {node.kind for path, node in nodes.items() if path.endswith("/victim")}
    assert kinds >= {"file", "link" if planted == "link" else "other"}
    assert not stored_anywhere(tmp_path / "store", SECRET)


def test_a_directory_that_becomes_a_link_while_it_is_walked(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET)
    (place.work / "real").mkdir()
    (place.work / "real" / "secret").write_text("harmless")
    (place.work / "spare").symlink_to(outside)
    with swapping(place.work / "real", place.work / "spare"):
        for _ in range(500):
            place.take()
    assert not stored_anywhere(tmp_path / "store", SECRET)


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_link_that_replaces_a_scanned_directory(tmp_path: Path, kind: str) -> None:
    """The swap at the worst moment: after the check of the entry, before it is opened."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET)
    work = tmp_path / "work"
    work.mkdir()
    victim = work / "victim"
    victim.mkdir() if kind == "directory" else victim.write_text("harmless")
    kept: list[bytes] = []
    scan = Scan(
        Manifest({}),
        {},
        lambda source, size: kept.append(os.read(source, size)) or "0" * 64,
        SnapshotLimits(),
    )
    parent = os.open(work, os.O_RDONLY)
    try:
        with os.scandir(parent) as found:
            (entry,) = found
        entry.stat(follow_symlinks=False)  # the entry caches this result
        os.rename(victim, tmp_path / "aside")
        victim.symlink_to(outside / "secret" if kind == "file" else outside)
        scan._entry(parent, entry, "workspace/victim", 1)
    finally:
        os.close(parent)
    assert kept == []
    assert list(scan.nodes) == ["workspace/victim"]
    assert scan.nodes["workspace/victim"].reason.startswith("cannot be read")


def test_any_displayed_name_can_be_converted_back(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    names = [b"line\nbreak", b"\xff\xfe", b"\x1b[31mred", b"-rf", b" ", "ä\u202e".encode(), b"\\"]
    for name in names:
        with open(os.path.join(os.fsencode(place.work), name), "wb") as stream:
            stream.write(b"content of " + name)
    digest = place.take().manifest
    for name in names:
        os.unlink(os.path.join(os.fsencode(place.work), name))
    assert place.go_to(digest).failed == []
    found = dict.fromkeys(os.listdir(os.fsencode(place.work)))
    for name in names:
        assert name in found
        with open(os.path.join(os.fsencode(place.work), name), "rb") as stream:
            assert stream.read() == b"content of " + name


def test_huge_and_sparse_files_are_not_kept(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    with open(place.work / "sparse", "wb") as stream:
        stream.truncate(1 << 40)
    began = time.process_time()
    taken = place.take()
    assert time.process_time() - began < 1
    assert not taken.is_complete
    assert "larger than" in place.reason("workspace/sparse")
    with open(place.work / "sparse", "r+b") as stream:
        stream.write(b"changed in place")
    assert place.what_changed(place.take()) == {"workspace/sparse": "changed"}


def test_the_reading_of_one_snapshot_is_bounded(tmp_path: Path) -> None:
    place = make_place(tmp_path, file_bytes=1_000, read_bytes=2_500)
    for number in range(4):
        (place.work / f"{number}").write_bytes(bytes([number]) * 1_000)
    taken = place.take()
    assert taken.stored_bytes < 4_000
    assert "new bytes was reached" in place.store.load(taken.manifest).nodes["workspace/3"].reason
    # The rest is kept next time, and this does not count as a change of the file.
    (place.work / "4").write_text("new")
    assert place.what_changed(place.take()) == {"workspace/4": "added"}


def test_too_many_files_are_cut_and_not_reported_as_deleted(tmp_path: Path) -> None:
    place = make_place(tmp_path, directory=50)
    (place.work / "crowd").mkdir()
    for number in range(40):
        (place.work / "crowd" / f"{number}").touch()
    place.take()
    for number in range(40, 60):
        (place.work / "crowd" / f"{number}").touch()
    (place.work / "seen").touch()
    assert place.what_changed(place.take()) == {"workspace/seen": "added"}
    assert "more than 50" in place.reason("workspace/crowd")


def test_too_many_files_in_total_are_cut(tmp_path: Path) -> None:
    place = make_place(tmp_path, entries=30)
    for name in "abc":
        (place.work / name).mkdir()
        for number in range(12):
            (place.work / name / f"{number}").touch()
    manifest = place.store.load(place.take().manifest)
    assert len(manifest.nodes) <= 32
    assert manifest.nodes["workspace/c"].reason
    assert not manifest.nodes["workspace/a"].reason


def test_long_paths_do_not_fill_the_memory(tmp_path: Path) -> None:
    place = make_place(tmp_path, names=20_000)
    directory = os.open(place.work, os.O_RDONLY)
    for _ in range(59):
        os.mkdir("d" * 200, dir_fd=directory)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    manifest = place.store.load(place.take().manifest)
    assert sum(len(path) for path in manifest.nodes) < 25_000
    assert not manifest.is_complete


def test_deep_nesting_ends(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    directory = os.open(place.work, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    manifest = place.store.load(place.take().manifest)
    assert max(path.count("/") for path in manifest.nodes) <= 60
    assert not manifest.is_complete


def test_a_slow_walk_stops(tmp_path: Path) -> None:
    place = make_place(tmp_path, seconds=0.0)
    (place.work / "a").write_text("a")
    taken = place.take()
    assert "within 0 s" in place.store.load(taken.manifest).nodes["workspace"].reason


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    place = make_place(tmp_path, file_bytes=400_000)
    growing = place.work / "growing"
    growing.touch()
    stop = threading.Event()

    def grow() -> None:
        while not stop.is_set():
            with open(growing, "ab") as stream:
                stream.write(b"x" * 50_000)
            if growing.stat().st_size > 3_000_000:
                os.truncate(growing, 0)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        for _ in range(100):
            place.take()
    finally:
        stop.set()
        thread.join()
    sizes = [path.stat().st_size for path in (tmp_path / "store" / "objects").rglob("*")]
    assert max(sizes, default=0) <= 400_000
    assert not list((tmp_path / "store").rglob("new-*"))
