"""Backups that somebody has changed, and directories that an agent has prepared."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.features.operations.backups.create import _Writer
from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.objects import Packed, pack, unpack
from agents.features.operations.backups.repository import DirectoryRepository
from agents.features.operations.backups.source_tree import SourceTree
from sandbox.directories.removal import remove_tree
from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    measured,
    refused,
    state_of,
)

Body = dict[str, Any]


# Objects ------------------------------------------------------------------------------------------


def _objects(installation: Installation) -> Iterator[Path]:
    return (
        path for path in sorted((installation.repository / "objects").rglob("*")) if path.is_file()
    )


def database_object(installation: Installation) -> Path:
    digest = json.loads(installation.manifest.read_bytes())["database"]["sha256"]
    return installation.repository / "objects" / digest[:2] / digest


def test_a_truncated_object_is_refused(copied: Installation) -> None:
    place = database_object(copied)
    place.write_bytes(place.read_bytes()[:-10])
    assert "is truncated" in refused(copied)
    assert "is truncated" in line_of(copied.verify())


def test_a_missing_object_is_refused(copied: Installation) -> None:
    database_object(copied).unlink()
    assert "is missing" in refused(copied)


def test_an_exchanged_object_is_refused(copied: Installation) -> None:
    first, *_, last = _objects(copied)
    last.write_bytes(first.read_bytes())
    assert "of the backup" in refused(copied)


def test_an_object_that_is_a_link_or_a_pipe_is_refused(copied: Installation) -> None:
    place = database_object(copied)
    place.unlink()
    place.symlink_to("/etc/passwd")
    assert "Cannot read the object" in refused(copied)
    place.unlink()
    os.mkfifo(place)
    assert "it is no plain file" in line_of(copied.verify())


def test_a_bomb_is_noticed_after_the_expected_size(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    packer = zlib.compressobj(9)
    with bomb.open("wb") as file:
        for _ in range(64):
            file.write(packer.compress(b"\0" * 1024**2))
        file.write(packer.flush())
    assert bomb.stat().st_size < 100_000
    written: list[int] = []
    with bomb.open("rb") as file, pytest.raises(BackupRefused, match="is larger than"):
        unpack(
            file,
            Packed(hashlib.sha256(b"").hexdigest(), 10),
            lambda data: written.append(len(data)),
        )
    assert sum(written) <= 10


MIB = 1024**2


def zeros(count: int) -> bytes:
    """Return a compressed object with this number of MiB, which is a thousand times smaller."""
    packer = zlib.compressobj(9)
    first = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    each = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    adler = 1
    for _ in range(count):
        adler = zlib.adler32(bytes(MIB), adler)
    end = zlib.compressobj(9, wbits=-15).flush()
    return first + each * (count - 1) + end + adler.to_bytes(4, "big")


def test_an_object_that_expands_a_thousand_times_is_refused_with_little_memory(
    copied: Installation,
) -> None:
    database_object(copied).write_bytes(zeros(1_500))
    vel = copied.new(VEL_SECRET_KEY=KEY)
    done, most = measured(vel, "restore", "latest", "--from", str(copied.repository))
    assert "is larger than the manifest says" in line_of(done)
    assert most < 400
    assert state_of(vel.data) == {}


@pytest.mark.slow
def test_a_list_of_files_that_expands_a_thousand_times_is_refused_with_little_memory(
    copied: Installation,
) -> None:
    """Its size is in the signed manifest, so its content is written, but never read as a whole."""
    content = hashlib.sha256()
    for _ in range(500):
        content.update(bytes(MIB))
    place = copied.repository / "objects" / content.hexdigest()[:2] / content.hexdigest()
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(zeros(500))

    def expand(body: Body) -> None:
        listed = next(each for each in body["files"] if "/manifests/" in each["path"])
        listed.update(sha256=content.hexdigest(), size=500 * MIB)

    copied.change_manifest(expand, KEY)
    vel = copied.new(VEL_SECRET_KEY=KEY)
    done, most = measured(vel, "restore", "latest", "--from", str(copied.repository))
    assert "in the backup is damaged" in line_of(done)
    assert most < 400
    assert state_of(vel.data) == {}


@pytest.mark.parametrize("size", [0, 1, 1024**2, 1024**2 + 1, 3 * 1024**2])
def test_contents_of_each_size_come_back(tmp_path: Path, size: int) -> None:
    content = os.urandom(size // 2) + b"\0" * (size - size // 2)
    source, place = tmp_path / "source", tmp_path / "object"
    source.write_bytes(content)
    with source.open("rb") as file, place.open("wb") as target:
        packed = pack(file.read, target)
    assert packed == Packed(hashlib.sha256(content).hexdigest(), size)
    found: list[bytes] = []
    with place.open("rb") as file:
        unpack(file, packed, found.append)
    assert b"".join(found) == content
    place.write_bytes(place.read_bytes() + b"more")
    with place.open("rb") as file, pytest.raises(BackupRefused, match="has other contents"):
        unpack(file, packed, found.append)


# Files of agents ----------------------------------------------------------------------------------


def test_links_and_special_files_of_an_agent_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    data = tmp_path / "data"
    workspace = data / "workspaces" / "thread" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "note.txt").write_text("note")
    (workspace / "link").symlink_to(outside / "secret")
    (workspace / "directory").symlink_to(outside)
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        # The whole path can be longer than the 107 bytes of an address.
        monkeypatch.chdir(workspace)
        listening.bind("s")
    tree = SourceTree(data)
    assert [found.path for found in tree.files()] == ["workspaces/thread/workspace/note.txt"]
    assert tree.skipped == {"link": 2, "special file": 2}


def test_a_directory_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    data = tmp_path / "data"
    inner = data / "workspaces" / "thread" / "inner"
    inner.mkdir(parents=True)
    (inner / "secret").write_text("mine")
    tree = SourceTree(data)
    (found,) = tree.files()
    shutil.rmtree(inner)
    inner.symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        tree.open(found.path)


def test_a_directory_that_cannot_be_read_stops_the_backup(tmp_path: Path) -> None:
    (tmp_path / "workspaces").mkdir()
    (tmp_path / "workspaces" / "file").write_text("file")
    tree = SourceTree(tmp_path)
    (found,) = tree.files()
    repository = DirectoryRepository(tmp_path / "backups")
    repository.prepare()
    writer = _Writer(repository, tmp_path, {})
    lowest = os.dup(0)
    os.close(lowest)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        with pytest.raises(BackupRefused, match="'workspaces' cannot be read: Too many open"):
            next(tree.files())
        with pytest.raises(BackupRefused, match="'workspaces/file' cannot be read: Too many"):
            writer.add(tree, found)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert tree.skipped == {}


def test_a_very_deep_tree_is_left_out_and_does_not_stop_a_backup(tmp_path: Path) -> None:
    top = tmp_path / "workspaces"
    top.mkdir()
    (top / "file").write_text("file")
    descriptor = os.open(top, os.O_RDONLY)
    try:
        for _ in range(1_200):  # deeper than the recursion limit of Python
            os.mkdir("d" * 10, dir_fd=descriptor)
            inner = os.open("d" * 10, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
    finally:
        os.close(descriptor)
    try:
        tree = SourceTree(tmp_path)
        assert [found.path for found in tree.files()] == ["workspaces/file"]
        assert tree.skipped == {"too deep": 1}
    finally:
        remove_tree(top)  # pytest cannot delete it
