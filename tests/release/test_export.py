"""A release contains the files of its commit, whatever settings of git its builder has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from release_tools.source import ReleaseError, Source, export


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Return a commit of one file in `tmp_path/checkout`."""
    checkout = tmp_path / "checkout"
    config = tmp_path / "config"
    config.write_text("[user]\nname = Ada\nemail = ada@example.com\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))

    def git(*words: str) -> str:
        command = ["git", "-C", str(checkout), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    checkout.mkdir()
    git("init", "--quiet")
    (checkout / "f.txt").write_bytes(b"one\ntwo\n")
    git("add", "f.txt")
    git("commit", "--quiet", "--message", "Add a file")
    return Source(git("rev-parse", "HEAD"), 0, "1.0")


def test_the_attributes_of_the_builder_do_not_change_the_files(
    source: Source, tmp_path: Path
) -> None:
    attributes = tmp_path / "attributes"
    attributes.write_text("f.txt text eol=crlf\n")
    with (tmp_path / "config").open("a") as config:
        config.write(f"[core]\nattributesFile = {attributes}\n")
    target = tmp_path / "target"
    target.mkdir()

    export(tmp_path / "checkout", source, target)

    assert (target / "f.txt").read_bytes() == b"one\ntwo\n"


def test_the_line_ends_of_the_builder_do_not_change_the_files(
    source: Source, tmp_path: Path
) -> None:
    """`eol` applies to files that an attribute declares to be text."""
    checkout = tmp_path / "checkout"
    (checkout / ".git/info/attributes").write_text("f.txt text\n")
    with (tmp_path / "config").open("a") as config:
        config.write("[core]\neol = crlf\n")
    target = tmp_path / "target"
    target.mkdir()

    export(checkout, source, target)

    assert (target / "f.txt").read_bytes() == b"one\ntwo\n"


def test_a_failure_of_tar_is_a_release_error(source: Source, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="tar failed"):
        export(tmp_path / "checkout", source, tmp_path / "missing")


def test_a_missing_tar_is_a_release_error(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    git = shutil.which("git")
    assert git is not None
    (programs / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(programs))

    with pytest.raises(ReleaseError, match="tar is not installed"):
        export(tmp_path / "checkout", source, tmp_path)
