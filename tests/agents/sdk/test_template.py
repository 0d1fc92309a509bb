"""A program starts with a stored empty database if possible."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agents.sdk.environment.template import begin_with_template, keep_as_template


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store a template, and return the directory for programs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "vel").mkdir(parents=True, mode=0o700)
    with sqlite3.connect(tmp_path / "first.sqlite3") as connection:
        connection.execute("CREATE TABLE one (id)")
    connection.close()
    keep_as_template(tmp_path / "first.sqlite3")
    place = tmp_path / "programs"
    place.mkdir()
    return place


def test_the_database_is_a_copy_of_the_template(stored: Path) -> None:
    file = stored / "vel.sqlite3"
    assert begin_with_template(file)
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("one",)]
    connection.close()
    assert list(stored.iterdir()) == [file]


def test_a_file_system_without_hard_links_gets_no_copy_and_keeps_nothing(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))  # as FAT and exFAT do

    monkeypatch.setattr(os, "link", refused)
    assert not begin_with_template(stored / "vel.sqlite3")
    assert list(stored.iterdir()) == []
