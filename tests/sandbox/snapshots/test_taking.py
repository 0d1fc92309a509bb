"""Snapshots find changes, keep them once, and cost nothing without changes."""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import threading
from pathlib import Path

import pytest

from sandbox.snapshots import SnapshotLost, SnapshotStore
from tests.sandbox.snapshots.trees import make_place


def test_added_changed_and_deleted_files_are_distinguished(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.work / "kept.txt").write_text("same")
    (place.work / "edited.txt").write_text("one\ntwo\n")
    (place.work / "gone.txt").write_text("bye")
    place.take()
    (place.work / "edited.txt").write_text("one\n2\n")
    (place.work / "gone.txt").unlink()
    (place.work / "new" / "deep").mkdir(parents=True)
    (place.work / "new" / "deep" / "file").write_bytes(b"\0\1")

    taken = place.take()

    assert place.what_changed(taken) == {
        "workspace/edited.txt": "changed",
        "workspace/gone.txt": "deleted",
        "workspace/new": "added",
        "workspace/new/deep": "added",
        "workspace/new/deep/file": "added",
    }
    assert (taken.changes.added, taken.changes.changed, taken.changes.deleted) == (3, 1, 1)
    (edited,) = (c for c in place.changes(taken) if c.what == "changed")
    assert edited.before is not None
    assert edited.after is not None
    before = place.store.read(edited.before.content, 100)
    after = place.store.read(edited.after.content, 100)
    assert (before, after) == (b"one\ntwo\n", b"one\n2\n")


def test_nothing_is_stored_when_nothing_changed(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.work / "a").write_text("a")
    first = place.take()
    os.utime(place.work / "a")
    again = place.take()
    assert not again.has_changed
    assert (again.manifest, again.stored_bytes) == (first.manifest, 0)
    assert len(list((tmp_path / "store" / "manifests").iterdir())) == 1


def test_a_change_with_the_same_size_and_time_is_found(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    file = place.work / "a"
    file.write_text("aaaa")
    place.take()
    before = file.stat()
    with open(file, "r+") as stream:  # the same inode
        stream.write("bbbb")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert place.what_changed(place.take()) == {"workspace/a": "changed"}


def test_a_change_that_leaves_no_stamp_right_after_a_snapshot_is_found(tmp_path: Path) -> None:
    """The kernel stamps the first write to a mapped page, but not the following ones."""
    place = make_place(tmp_path)
    with open(place.work / "a", "w+b") as stream:
        stream.write(b"a" * 100)
        stream.flush()
        with mmap.mmap(stream.fileno(), 100) as page:
            page[0:1] = b"b"
            before = (place.work / "a").stat()
            place.take()
            page[0:1] = b"c"
            after = (place.work / "a").stat()
            assert before.st_ctime_ns == after.st_ctime_ns
            assert place.what_changed(place.take()) == {"workspace/a": "changed"}


def test_a_file_with_the_same_stamp_is_not_read_again(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.work / "a").write_text("a")
    place.take()
    # A stamp is trusted when it is older than the resolution of the clock.
    while '"workspace/a"' not in (tmp_path / "store" / "head").read_text():
        place.take()
    kept = next(path for path in (tmp_path / "store" / "objects").rglob("*") if path.is_file())
    kept.unlink()
    place.take()
    assert not kept.exists()  # reading it again would have kept it again
    os.utime(place.work / "a")
    place.take()
    assert kept.exists()


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    for number in range(5):
        (place.work / f"{number}").write_bytes(b"x" * 1_000_000)
    taken = place.take()
    assert taken.stored_bytes < 1_100_000


def test_two_processes_share_one_line_of_snapshots(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    other = SnapshotStore(tmp_path / "store")
    first = place.take()
    (place.work / "a").write_text("a")
    second = other.take(place.areas)
    assert second.base == first.manifest
    (place.work / "b").write_text("b")
    third = place.take()
    assert third.base == second.manifest
    assert place.what_changed(third) == {"workspace/b": "added"}


def test_the_store_is_closed_to_others(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.work / "secret").write_text("x")
    (place.work / "secret").chmod(0o666)
    old = os.umask(0)
    try:
        place.take()
    finally:
        os.umask(old)
    for path in (tmp_path / "store", *(tmp_path / "store").rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_unneeded_snapshots_are_removed_with_their_contents(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    digests = []
    for number in range(4):
        (place.work / "a").write_text(f"version {number}")
        digests.append(place.take().manifest)
    assert place.store.prune([]) == 0  # too young: their rows may not be committed yet
    for path in (tmp_path / "store" / "manifests").iterdir():
        os.utime(path, (0, 0))
    assert place.store.prune([digests[1]]) > 0
    place.store.load(digests[1])
    place.store.load(digests[3])
    for lost in (digests[0], digests[2]):
        with pytest.raises(SnapshotLost):
            SnapshotStore(tmp_path / "store").load(lost)
    assert place.store.read(_sha("version 0"), 20) is None
    assert place.store.read(_sha("version 1"), 20) == b"version 1"


def test_a_damaged_store_is_reported(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.work / "a").write_text("a")
    taken = place.take()
    manifest = tmp_path / "store" / "manifests" / taken.manifest
    for broken in (b"", b"rubbish", manifest.read_bytes()[:-30]):
        manifest.write_bytes(broken)
        store = SnapshotStore(tmp_path / "store")
        with pytest.raises(SnapshotLost, match="damaged"):
            store.load(taken.manifest)
        assert store.take(place.areas).base == ""  # it starts again


def test_two_concurrent_snapshots_do_not_disturb_each_other(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    stores = [SnapshotStore(tmp_path / "store") for _ in range(4)]
    found: list[object] = []

    def work(number: int) -> None:
        try:
            for step in range(10):
                (place.work / f"{number}-{step}").write_text(f"{number} {step}")
                found.append(stores[number].take(place.areas))
        except Exception as error:  # noqa: BLE001  # what was raised is looked at below
            found.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [item for item in found if isinstance(item, Exception)]
    last = place.store.load(place.take().manifest)
    assert len([path for path in last.nodes if "-" in path]) == 40
