"""Restoring restores a state, follows no link, and can be undone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from sandbox.snapshots import restore
from tests.sandbox.snapshots.trees import contents, make_place


def test_every_kind_of_change_is_undone_and_redone(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    work = place.work
    (work / "edited").write_text("before")
    (work / "tool").write_text("#!/bin/sh\n")
    (work / "tool").chmod(0o755)
    (work / "file-to-directory").write_text("file")
    (work / "directory-to-file" / "inner").mkdir(parents=True)
    (work / "directory-to-file" / "inner" / "a").write_text("a")
    (work / "link").symlink_to("edited")
    (work / "gone").mkdir()
    (work / "gone" / "b").write_text("b")
    before, first = contents(work), place.take().manifest
    (work / "edited").write_text("after")
    (work / "tool").chmod(0o600)
    (work / "file-to-directory").unlink()
    (work / "file-to-directory").mkdir()
    (work / "file-to-directory" / "c").write_text("c")
    shutil.rmtree(work / "directory-to-file")
    (work / "directory-to-file").write_text("file now")
    (work / "link").unlink()
    (work / "link").symlink_to("/etc/passwd")
    shutil.rmtree(work / "gone")
    (work / "new").write_text("new")
    os.mkfifo(work / "pipe")
    after, second = contents(work), place.take().manifest

    done = place.go_to(first)

    assert done.failed == []
    assert contents(work) == before
    undone = place.go_to(second)
    assert [path for path, _ in undone.failed] == ["workspace/pipe"]
    after.pop("pipe")
    assert contents(work) == after


def test_a_link_planted_in_the_way_is_not_followed(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("the host's")
    (place.work / "d").mkdir()
    (place.work / "d" / "a").write_text("the agent's")
    first = place.take().manifest
    shutil.rmtree(place.work / "d")
    (place.work / "d").symlink_to(outside)

    assert place.go_to(first).failed == []

    assert (outside / "a").read_text() == "the host's"
    assert (place.work / "d" / "a").read_text() == "the agent's"
    assert not (place.work / "d").is_symlink()


def test_a_link_planted_after_the_scan_affects_only_its_own_path(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("the host's")
    for name in ("d", "e"):
        (place.work / name).mkdir()
        (place.work / name / "a").write_text("first")
    first = place.store.load(place.take().manifest)
    for name in ("d", "e"):
        (place.work / name / "a").write_text("second")
        (place.work / name / "b").write_text("second")
    now = place.store.load(place.take().manifest)
    shutil.rmtree(place.work / "d")
    (place.work / "d").symlink_to(outside)
    (outside / "b").write_text("the host's")

    done = restore(place.store, place.areas, now, first, None)

    assert (outside / "a").read_text() == "the host's"
    assert (outside / "b").read_text() == "the host's"
    assert {path for path, _ in done.failed} == {"workspace/d/a", "workspace/d/b"}
    assert (place.work / "e" / "a").read_text() == "first"


def test_files_that_cannot_be_restored_are_not_changed(tmp_path: Path) -> None:
    place = make_place(tmp_path, file_bytes=100)
    (place.work / "small").write_text("small")
    first = place.take().manifest
    (place.work / "large").write_bytes(b"x" * 101)
    (place.work / "small").write_bytes(b"y" * 101)

    done = place.go_to(first)

    assert {path for path, _ in done.failed} == {"workspace/large", "workspace/small"}
    assert (place.work / "large").exists()
    assert (place.work / "small").read_bytes() == b"y" * 101


def test_a_damaged_content_replaces_nothing(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.work / "a").write_text("first")
    first = place.take().manifest
    for path in (tmp_path / "store" / "objects").rglob("*"):
        if path.is_file():
            path.write_text("forged")
    (place.work / "a").write_text("second")

    done = place.go_to(first)

    assert done.failed == [("workspace/a", "its content is lost or damaged")]
    assert contents(place.work) == {"a": ("0o100644", b"second")}


def test_setuid_bits_do_not_come_back(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.work / "a").write_text("a")
    (place.work / "a").chmod(0o6755)
    first = place.take().manifest
    (place.work / "a").unlink()
    place.go_to(first)
    assert (place.work / "a").stat().st_mode & 0o7777 == 0o755


@pytest.mark.root
def test_restored_files_belong_to_the_owner_of_the_workspace(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.work / "d").mkdir()
    (place.work / "d" / "a").write_text("a")
    (place.work / "link").symlink_to("d")
    first = place.store.load(place.take().manifest)
    shutil.rmtree(place.work / "d")
    (place.work / "link").unlink()
    now = place.store.load(place.take().manifest)
    done = restore(place.store, place.areas, now, first, (234_567, 234_568))
    assert done.failed == []
    for path in (place.work / "d", place.work / "d" / "a", place.work / "link"):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (234_567, 234_568)
