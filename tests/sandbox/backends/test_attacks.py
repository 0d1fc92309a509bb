"""Hostile files do not make the host read them or hang."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sandbox.backends.subjects import Subject

SECRET = "the host's secret"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory next to the files, with a secret in it."""
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "secret.txt").write_text(SECRET)
    return directory


def place(subject: Subject) -> Path:
    """Return the path of the subject's files on the host."""
    assert subject.host is not None
    return subject.host


def assert_out_of_reach(subject: Subject, name: str) -> None:
    """Check that no tool reads or writes the target of `name`."""
    backend, path = subject.backend, subject.at(name)
    for result in (
        backend.read_file(path),
        backend.edit_file(path, "secret", "changed"),
        backend.write_file(path, "changed"),
        backend.grep("secret", path),
    ):
        assert list(result) == ["error"], result
        assert SECRET not in result["error"]
    assert backend.grep("secret", subject.home)["matches"] == []


@pytest.mark.parametrize("depth", ["", "sub/"])
def test_a_link_out_is_not_followed(subject_file: tuple[Subject, str], depth: str) -> None:
    subject, target = subject_file
    (place(subject) / "sub").mkdir()
    os.symlink(target, place(subject) / depth / "link")

    assert_out_of_reach(subject, f"{depth}link")
    assert Path(place(subject) / depth / "link").is_symlink()


@pytest.fixture(params=["absolute", "relative", "/etc/passwd", "/proc/self/environ"])
def subject_file(
    request: pytest.FixtureRequest, on_disk: Subject, outside: Path
) -> tuple[Subject, str]:
    secret = outside / "secret.txt"
    relative = "/".join([".."] * 30) + str(secret)
    target = {"absolute": str(secret), "relative": relative}.get(request.param, request.param)
    return on_disk, target


def test_a_directory_that_is_a_link_out_is_not_entered(on_disk: Subject, outside: Path) -> None:
    os.symlink(outside, place(on_disk) / "dir")

    assert_out_of_reach(on_disk, "dir/secret.txt")
    assert "error" in on_disk.backend.ls(on_disk.at("dir"))
    assert "error" in on_disk.backend.glob("*", on_disk.at("dir"))
    assert "error" in on_disk.backend.write_file(on_disk.at("dir/new/file.txt"), "x")
    assert on_disk.backend.glob("**/secret.txt", on_disk.home)["matches"] == []
    assert sorted(os.listdir(outside)) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("target", ["self/root/etc/passwd", "self/cwd", "self/fd/0", "1/environ"])
def test_magic_links_are_not_followed(on_disk: Subject, target: str) -> None:
    os.symlink(f"/proc/{target}", place(on_disk) / "link")

    assert_out_of_reach(on_disk, "link")


def test_links_that_stay_inside_can_be_read_but_not_written(on_disk: Subject) -> None:
    on_disk.put("v2/notes.md", "content")
    os.symlink("v2", place(on_disk) / "latest")
    os.symlink("../latest/notes.md", place(on_disk) / "v2" / "alias.md")

    for name in ("latest/notes.md", "v2/alias.md", "latest/alias.md"):
        read = on_disk.backend.read_file(on_disk.at(name))
        assert read["content"] == "     1 | content"
    listed = on_disk.backend.ls(on_disk.at("v2"))["entries"]
    assert {entry["name"]: entry["type"] for entry in listed} == {
        "alias.md": "link",
        "notes.md": "file",
    }
    assert "error" not in on_disk.backend.write_file(on_disk.at("latest/new.md"), "x")
    assert (place(on_disk) / "v2" / "new.md").read_text() == "x"
    refused = on_disk.backend.write_file(on_disk.at("v2/alias.md"), "x")
    assert "not written through" in refused["error"]
    assert (place(on_disk) / "v2" / "notes.md").read_text() == "content"


def test_links_in_a_circle_end(on_disk: Subject) -> None:
    os.symlink("b", place(on_disk) / "a")
    os.symlink("a", place(on_disk) / "b")
    os.symlink(".", place(on_disk) / "self")

    assert "circle" in on_disk.backend.read_file(on_disk.at("a"))["error"]
    assert on_disk.backend.glob("**", on_disk.home)["count"] == 3
    assert on_disk.backend.grep("x", on_disk.home)["files_searched"] == 0


def test_a_dangling_link_cannot_create_files(on_disk: Subject, outside: Path) -> None:
    os.symlink(outside / "new.txt", place(on_disk) / "link")
    os.symlink(outside / "newdir", place(on_disk) / "dir")
    os.symlink("nowhere", place(on_disk) / "inside")

    for name in ("link", "dir/file.txt", "inside/file.txt", "inside"):
        assert "error" in on_disk.backend.write_file(on_disk.at(name), "x")
    assert sorted(os.listdir(outside)) == ["secret.txt"]


def plant_fifo(path: Path) -> None:
    os.mkfifo(path)


def plant_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket has at most 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(here)


def plant_device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero never ends


@pytest.mark.parametrize(
    "plant", [plant_fifo, plant_socket, pytest.param(plant_device, marks=pytest.mark.root)]
)
def test_special_files_are_not_read_or_written(
    on_disk: Subject, plant: Callable[[Path], None]
) -> None:
    plant(place(on_disk) / "odd")
    on_disk.put("dir/file.txt", "secret")

    backend, path = on_disk.backend, on_disk.at("odd")
    for result in (
        backend.read_file(path),
        backend.write_file(path, "x"),
        backend.edit_file(path, "a", "b"),
        backend.grep("x", path),
        backend.read_file(path + "/below"),
        backend.ls(path),
    ):
        assert list(result) == ["error"], result
    assert "not a regular file" in backend.read_file(path)["error"]
    entries = {entry["name"]: entry["type"] for entry in backend.ls(on_disk.home)["entries"]}
    assert entries == {"odd": "other", "dir": "directory"}
    assert backend.grep("secret", on_disk.home)["total_matches"] == 1
    assert backend.glob("**", on_disk.home)["count"] == 1


def test_a_file_under_a_lease_does_not_block_the_host(on_disk: Subject) -> None:
    path = on_disk.put("leased.txt", "x")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, os, signal, sys\n"
            "signal.signal(signal.SIGIO, signal.SIG_IGN)\n"
            "file = os.open(sys.argv[1], os.O_RDWR)\n"
            "fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
            "print('held', flush=True)\n"
            "sys.stdin.read()\n",
            str(place(on_disk) / "leased.txt"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert "in use" in on_disk.backend.read_file(path)["error"]
        assert on_disk.backend.grep("x", on_disk.home)["files_searched"] == 0
    finally:
        holder.communicate()
    assert "error" not in on_disk.backend.read_file(path)


def test_a_huge_sparse_file_costs_little(on_disk: Subject) -> None:
    path = place(on_disk) / "huge"
    path.write_bytes(b"text\n" * 4000)
    os.truncate(path, 2**42)
    on_disk.limit(search_bytes=10**7, scan=10**7)

    backend = on_disk.backend
    assert backend.read_file(on_disk.at("huge"), limit=5)["total_lines"] is None
    assert "error" in backend.read_file(on_disk.at("huge"), offset=10**6)
    assert "error" in backend.edit_file(on_disk.at("huge"), "text", "x")
    found = backend.grep("nowhere", on_disk.home)
    assert (found["truncated"], found["matches"]) == (True, [])
    assert "too much data" in found["note"]
    with pytest.raises(Exception, match="too large"):
        backend.content_hash(on_disk.at("huge"))


def test_a_name_that_is_not_utf8_is_shown_and_has_no_path(on_disk: Subject) -> None:
    (place(on_disk) / os.fsdecode(b"caf\xe9")).write_text("needle")
    (place(on_disk) / "caf\\xe9").write_text("needle")

    entries = on_disk.backend.ls(on_disk.home)["entries"]

    assert len(entries) == 2
    assert {(entry["name"], entry["path"]) for entry in entries} == {
        ("caf\\xe9", None),
        ("caf\\xe9", on_disk.at("caf\\xe9")),
    }
    assert on_disk.backend.glob("*", on_disk.home)["matches"] == [on_disk.at("caf\\xe9")]
    assert on_disk.backend.grep("needle", on_disk.home)["files_searched"] == 1


def test_directories_nested_very_deep_are_left_out_with_a_note(on_disk: Subject) -> None:
    here = os.open(place(on_disk), os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d" * 10, dir_fd=here)
        below = os.open("d" * 10, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    for result in (
        on_disk.backend.glob("**/x", on_disk.home),
        on_disk.backend.grep("x", on_disk.home),
    ):
        assert result["truncated"] is True
        assert "deeper than 100" in result["note"]
    assert "longer than" in on_disk.backend.ls(on_disk.at("d" * 10 + "/d" * 3000))["error"]


def test_a_directory_with_too_many_names_is_cut(on_disk: Subject) -> None:
    for number in range(50):
        (place(on_disk) / str(number)).touch()
    for backend in (on_disk.backend, *getattr(on_disk.backend, "_mounts", {}).values()):
        inner = getattr(backend, "_backend", backend)
        inner.limits = type(inner.limits)(directory=20)

    assert len(on_disk.backend.ls(on_disk.home)["entries"]) == 20
    assert on_disk.backend.ls(on_disk.home)["truncated"] is True
    assert on_disk.backend.glob("*", on_disk.home)["truncated"] is True


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|aa)+$",
        "(a*)*b",
        "(.*a){30}b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(?:[ab]*a[ab]{900}){1}c",
    ],
)
def test_patterns_with_exponential_backtracking_end(on_disk: Subject, pattern: str) -> None:
    path = on_disk.put("a.txt", ("a" * 5000 + "!\n") * 4)

    assert on_disk.backend.grep(pattern, path)["matches"] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "/".join(["**"] * 200) + "/nothing",
        "*a" * 400 + "b",
        "{a,aa}" * 100 + "b",
        "**/" + "[a-z]*" * 100 + "!",
        "{" * 500,
    ],
)
def test_glob_bombs_end(on_disk: Subject, pattern: str) -> None:
    for number in range(20):
        on_disk.put("/".join(["a"] * number) + "/" + "a" * 200, "")

    result = on_disk.backend.glob(pattern, on_disk.home)

    assert result.get("matches", []) == []
