"""Owners, modes, hard links, full disks and system calls, which only a real directory has."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest

from sandbox.backends import TreeBackend
from sandbox.directories.beneath import (
    DIRECTORY,
    READ,
    Openat2Resolver,
    Resolver,
    WalkResolver,
    default_resolver,
)
from sandbox.errors import FileAccessFailed, StorageFull
from tests.sandbox.backends.subjects import Subject
from tests.sandbox.backends.test_attacks import place

NOBODY = 65534


@pytest.mark.root
def test_files_written_by_root_belong_to_the_owner_of_the_directory(on_disk: Subject) -> None:
    os.chown(place(on_disk), NOBODY, NOBODY)

    on_disk.put("a/b/new.txt", "x")
    on_disk.put("a/b/new.txt", "replaced")

    for name in ("a", "a/b", "a/b/new.txt"):
        found = (place(on_disk) / name).stat()
        assert (found.st_uid, found.st_gid) == (NOBODY, NOBODY)


@pytest.mark.root
def test_an_explicit_owner_is_used(tmp_path: Path) -> None:
    TreeBackend(tmp_path, uid=1234, gid=2345).write_bytes("/a/b", b"x")

    found = (tmp_path / "a" / "b").stat()
    assert (found.st_uid, found.st_gid) == (1234, 2345)


def test_a_write_keeps_permissions_and_drops_setuid(on_disk: Subject) -> None:
    path = on_disk.put("script.sh", "old")
    os.chmod(place(on_disk) / "script.sh", 0o6750)

    on_disk.backend.write_file(path, "new")

    assert stat.S_IMODE((place(on_disk) / "script.sh").stat().st_mode) == 0o750


def test_a_write_leaves_other_names_of_the_file_alone(on_disk: Subject, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("original")
    os.link(tmp_path / "elsewhere", place(on_disk) / "linked")

    assert "error" not in on_disk.backend.edit_file(on_disk.at("linked"), "original", "mine")

    assert (tmp_path / "elsewhere").read_text() == "original"
    assert (place(on_disk) / "linked").read_text() == "mine"


def test_a_change_in_place_between_read_and_write_is_found(on_disk: Subject) -> None:
    path = on_disk.put("a.txt", "one")
    before = on_disk.backend.stat(path)
    assert before is not None
    with (place(on_disk) / "a.txt").open("a") as file:
        file.write(" more")

    with pytest.raises(Exception, match="changed since you read it"):
        on_disk.backend.write_bytes(path, b"mine", if_version=before.version)


def test_a_failed_write_leaves_only_the_old_file(on_disk: Subject) -> None:
    path = on_disk.put("a.txt", "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StorageFull):
            on_disk.backend.write_bytes(path, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert os.listdir(place(on_disk)) == ["a.txt"]
    assert (place(on_disk) / "a.txt").read_text() == "old"


def test_no_descriptor_is_left_open(on_disk: Subject) -> None:
    on_disk.put("dir/a.txt", "x")
    os.mkfifo(place(on_disk) / "fifo")
    os.symlink("/etc", place(on_disk) / "out")
    os.symlink("dir", place(on_disk) / "in")
    backend = on_disk.backend
    before = os.listdir("/proc/self/fd")

    for name in ("dir/a.txt", "dir", "fifo", "out/passwd", "in/a.txt", "nowhere", "dir/a.txt/x"):
        path = on_disk.at(name)
        backend.ls(path)
        backend.read_file(path)
        backend.write_file(path, "x")
        backend.edit_file(path, "x", "y")
        backend.grep("x", path)
        backend.glob("**", path)
        backend.write_file(on_disk.at(f"new/{name}"), "x")

    assert len(os.listdir("/proc/self/fd")) <= len(before)


def test_a_root_that_is_gone_or_swapped_for_a_link_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    backend = TreeBackend(root)
    root.rmdir()

    assert "on the host" in backend.read_file("/a")["error"]
    os.symlink("/etc", root)
    with pytest.raises(FileAccessFailed):
        backend.stat("/passwd")
    assert "error" in backend.read_file("/passwd")


@pytest.mark.parametrize("resolver", [Openat2Resolver(), WalkResolver()])
def test_resolvers_agree_on_every_link(tmp_path: Path, resolver: Resolver) -> None:
    (tmp_path / "dir" / "below").mkdir(parents=True)
    (tmp_path / "dir" / "file").write_text("found")
    targets = {
        "dir/file": "found",
        "./dir//file": "found",
        "dir/below/../file": "found",
        "dir/../dir/file": "found",
        "dir/below/../../dir/file": "found",
        "../root/dir/file": "Invalid cross-device link",
        "dir/../../root/dir/file": "Invalid cross-device link",
        str(tmp_path / "dir" / "file"): "Invalid cross-device link",
        "dir": "found a directory",
        "dir/..": "found a directory",
        ".": "found a directory",
        "nowhere": "No such file or directory",
        "dir/file/below": "Not a directory",
        "link": "Too many levels of symbolic links",
    }
    root = os.open(tmp_path, DIRECTORY)
    for target, expected in targets.items():
        os.symlink(target, tmp_path / "link")
        try:
            with os.fdopen(resolver.open(root, ["link"], READ)) as file:
                found = file.read()
        except IsADirectoryError:
            found = "found a directory"
        except OSError as error:
            found = os.strerror(error.errno or 0)
        os.unlink(tmp_path / "link")
        assert (target, found) == (target, expected)
    os.close(root)


def test_the_default_is_openat2_on_this_kernel() -> None:
    assert isinstance(default_resolver(), Openat2Resolver)


@pytest.mark.parametrize("resolver", [Openat2Resolver(), WalkResolver()])
@pytest.mark.parametrize("name", ["cwd", "root", "exe", "fd/0", "root/etc/passwd"])
def test_magic_links_directly_below_the_root_are_not_followed(
    resolver: Resolver, name: str
) -> None:
    root = os.open(f"/proc/{os.getpid()}", DIRECTORY)
    try:
        with pytest.raises(OSError, match=r"cross-device|symbolic links|No such file"):
            resolver.open(root, name.split("/"), READ)
    finally:
        os.close(root)
