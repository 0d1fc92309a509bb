"""An ordinary account can use a tree from which an agent removed its own permissions."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.directories.archive import write_archive
from sandbox.directories.fingerprint import fingerprint
from sandbox.directories.owned import make_private
from sandbox.directories.removal import remove_tree
from sandbox.directories.reopening import CHANGE, open_below, open_directory, open_file
from sandbox.directories.tree_size import tree_size
from sandbox.linux.quota import TreeScan
from sandbox.workspace import prepare
from tests.sandbox.places import AS_ROOT, account, workspace_in
from tests.sandbox.snapshots.trees import Place, contents, make_place

SIZE = 100_000
FILES = ["closed/file", "closed/read-only/file", "secret", "read-only/file"]


def close_tree(top: Path) -> None:
    """Fill `top` with directories of mode 000 and 0555 and a file of mode 000, and close it."""
    for name in FILES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(name.encode() * (SIZE // len(name)))
    (top / "secret").chmod(0)
    (top / "closed" / "read-only").chmod(0o555)
    (top / "closed").chmod(0)
    (top / "read-only").chmod(0o555)
    top.chmod(0)


@dataclass
class Outside:
    """A directory outside the tree. Links in the tree point to it; it must not change."""

    directory: Path

    def assert_unchanged(self) -> None:
        found = {path.name: path.lstat().st_mode & 0o777 for path in self.directory.iterdir()}
        assert found == {"directory": 0o500, "file": 0o400}
        assert self.directory.stat().st_mode & 0o777 == 0o500


@pytest.fixture
def outside(place: Path) -> Outside:
    directory = place / "outside"
    (directory / "directory").mkdir(parents=True)
    (directory / "file").write_text("outside")
    (directory / "file").chmod(0o400)
    (directory / "directory").chmod(0o500)
    directory.chmod(0o500)
    return Outside(directory)


@pytest.fixture
def work(place: Path, outside: Outside) -> Path:
    work = place / "files" / "workspace"
    work.mkdir(parents=True)
    (work / "link").symlink_to(outside.directory)
    (work / "link-to-file").symlink_to(outside.directory / "file")
    close_tree(work)
    return work


def count(work: Path) -> tuple[int, bool]:
    scan = TreeScan([work])
    return (scan.usage.size, scan.usage.complete) if scan.run(60) else (0, False)


def sized(work: Path) -> tuple[int, bool]:
    found = tree_size(work, seconds=600.0)
    return found.size, found.is_complete


@pytest.mark.parametrize("measure", [count, sized])
def test_a_closed_tree_is_measured(
    work: Path, outside: Outside, measure: Callable[[Path], tuple[int, bool]]
) -> None:
    size, is_complete = measure(work)
    assert is_complete
    assert size >= SIZE * len(FILES) * 0.9
    outside.assert_unchanged()


def test_a_closed_tree_is_removed(work: Path, outside: Outside) -> None:
    remove_tree(work)
    assert not work.exists()
    outside.assert_unchanged()


def test_a_closed_tree_is_archived(work: Path, outside: Outside, place: Path) -> None:
    done = write_archive({"workspace": work}, place / "out.tar.gz")
    reason = "a link that could lead out"
    assert sorted(done.left_out) == [
        ("workspace/link", reason),
        ("workspace/link-to-file", reason),
    ]
    with tarfile.open(place / "out.tar.gz") as archive:
        names = {member.name for member in archive if member.isfile()}
    assert names == {f"workspace/{name}" for name in FILES}
    outside.assert_unchanged()


def test_a_closed_tree_keeps_its_fingerprint(work: Path, outside: Outside) -> None:
    assert fingerprint([work]) == fingerprint([work])
    outside.assert_unchanged()


def test_a_deep_tree_has_no_fingerprint(place: Path) -> None:
    (place / "deep").mkdir()
    directory = os.open(place / "deep", os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    assert fingerprint([place / "deep"]) != fingerprint([place / "deep"])
    remove_tree(place / "deep")


def kept(place: Path) -> Place:
    made = make_place(place / "other")
    made.root = place / "files"
    (made.root / "outputs").mkdir()
    return made


def test_a_closed_tree_is_stored_and_restored_elsewhere(
    work: Path, outside: Outside, place: Path
) -> None:
    kept_here = kept(place)
    taken = kept_here.take()
    assert taken.is_complete
    before = contents(work)
    assert set(FILES) < before.keys()
    (work / "read-only").chmod(0o755)
    if os.geteuid() == 0:  # root stores it without opening it first
        before["closed"] = "0o40700"
    remove_tree(work)
    work.mkdir()
    assert kept_here.go_to(taken.manifest).failed == []
    assert contents(work) == before | {"read-only": "0o40555"}
    outside.assert_unchanged()


def test_changes_in_read_only_directories_are_restored(place: Path, outside: Outside) -> None:
    kept_here = kept_in_new(place)
    work = kept_here.work
    (work / "a" / "b").mkdir(parents=True)
    (work / "a" / "b" / "changed").write_text("before")
    (work / "a" / "b" / "gone").write_text("before")
    (work / "a" / "b").chmod(0o555)
    (work / "a").chmod(0o555)
    first, before = kept_here.take().manifest, contents(work)
    (work / "a" / "b").chmod(0o755)
    (work / "a" / "b" / "changed").write_text("after")
    (work / "a" / "b" / "gone").unlink()
    (work / "a" / "b" / "new").mkdir()
    (work / "a" / "b" / "new" / "file").write_text("after")
    (work / "a" / "b" / "link").symlink_to(outside.directory)
    (work / "a" / "b" / "new").chmod(0o555)
    (work / "a" / "b").chmod(0o555)
    second, after = kept_here.take().manifest, contents(work)

    assert kept_here.go_to(first).failed == []
    assert contents(work) == before
    assert kept_here.go_to(second).failed == []
    assert contents(work) == after
    outside.assert_unchanged()


def kept_in_new(place: Path) -> Place:
    (place / "new").mkdir()
    return make_place(place / "new")


def test_a_workspace_with_closed_areas_is_prepared(place: Path) -> None:
    made = workspace_in(place)
    directory = make_private(made.root, made.uid, "mcp", "program")
    areas = [made.root / name for name in ("workspace", "shared", "outputs")]
    for closed in (made.root / "shared" / "drafts", directory, *areas):
        closed.chmod(0)
    again = prepare(place / "threads", "thread", account())
    assert again == made
    assert make_private(made.root, made.uid, "mcp", "program") == directory
    assert {path.stat().st_mode & 0o777 for path in (*areas, directory)} == {0o700}


@pytest.mark.parametrize("name", ["link", "link-to-file", "nothing"])
def test_links_are_not_followed(work: Path, outside: Outside, name: str) -> None:
    top = open_directory(work)
    for open_entry in (open_directory, open_file):
        with pytest.raises(OSError, match=name):
            open_entry(name, top)
    with pytest.raises(OSError, match=name):
        open_below(top, [name.encode(), b"directory"])
    os.close(top)
    outside.assert_unchanged()


@pytest.mark.skipif(AS_ROOT, reason="root needs no mode and changes none")
def test_only_the_missing_permissions_of_the_owner_are_restored(work: Path) -> None:
    os.close(open_directory(work))
    assert work.stat().st_mode & 0o777 == 0o500
    top = open_directory(work)
    os.close(open_file("secret", top))
    os.close(open_directory("read-only", top))
    os.close(top)
    assert (work / "secret").stat().st_mode & 0o777 == 0o400
    assert (work / "read-only").stat().st_mode & 0o777 == 0o555
    assert (work / "closed").stat().st_mode & 0o777 == 0


@pytest.mark.skipif(AS_ROOT, reason="root may open what belongs to another account")
def test_files_of_another_account_stay_closed() -> None:
    top = os.open("/", os.O_RDONLY)
    with pytest.raises(PermissionError):
        open_directory("root", top)
    os.close(top)


@pytest.mark.skipif(AS_ROOT, reason="root may change the mode of every directory")
def test_a_readable_directory_of_another_account_is_opened_as_it_is() -> None:
    directory = open_directory("/", needs=CHANGE)
    status = os.fstat(directory)
    os.close(directory)
    assert status.st_uid != os.geteuid()
