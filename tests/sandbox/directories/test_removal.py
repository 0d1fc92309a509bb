"""A hostile tree is removed completely, without any file of the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.directories.removal import remove_tree
from sandbox.directories.tree_size import tree_size


def test_a_tree_with_any_depth_mode_and_name_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    top.mkdir()
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "kept").write_text("kept")
    (top / "link").symlink_to(tmp_path / "host")
    os.mkfifo(top / "pipe")
    directory = os.open(top, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    (top / "closed" / "inner").mkdir(parents=True)
    (top / "closed" / "inner" / "x").write_text("x")
    (top / "closed" / "inner").chmod(0)
    (top / "closed").chmod(0)
    os.mkdir(os.path.join(os.fsencode(top), b"\xff\n"))
    assert not tree_size(top).is_complete  # deeper than the measured depth

    remove_tree(top)

    assert not top.exists()
    assert (tmp_path / "host" / "kept").read_text() == "kept"


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "tree").symlink_to("host")
    with pytest.raises(OSError, match="tree"):
        remove_tree(tmp_path / "tree")
    assert (tmp_path / "host").exists()
    remove_tree(tmp_path / "missing")


def test_a_sparse_file_counts_with_its_allocated_size(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as stream:
        stream.truncate(1 << 40)
    (tmp_path / "circle").symlink_to(".")
    found = tree_size(tmp_path)
    assert found.is_complete
    assert found.size < 1_000_000
