"""A release is built from a commit, and its tag belongs to its version."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from release_tools.build import pinned_packages
from release_tools.source import ReleaseError, Source, check_tag, export, read_source

SOURCE = Source("0" * 40, 1_700_000_000, "0.2.0")
CHANGELOG = "# Changelog\n\n## [0.2.0] - 2026-12-01\n\n## [0.1.0] - 2026-11-01\n"


def git(checkout: Path, *words: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", str(checkout), *who, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    made = tmp_path / "checkout"
    made.mkdir()
    git(made, "init")
    (made / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (made / ".gitignore").write_text("*.secret\n")
    git(made, "add", ".")
    git(made, "commit", "--message", "Start", "--date", "2026-11-01T12:00:00Z")
    return made


def test_the_version_is_that_of_the_commit(checkout: Path) -> None:
    assert read_source(checkout).version == "0.2.0"


@pytest.mark.parametrize("name", ["pyproject.toml", "new.py"])
def test_a_checkout_with_changes_is_refused(checkout: Path, name: str) -> None:
    (checkout / name).write_text("changed = true\n")
    with pytest.raises(ReleaseError, match="1 uncommitted changes"):
        read_source(checkout)


def test_a_directory_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="not a git repository"):
        read_source(tmp_path)


def test_an_ignored_file_is_not_exported(checkout: Path, tmp_path: Path) -> None:
    (checkout / "key.secret").write_text("sesame")
    tree = tmp_path / "tree"
    tree.mkdir()
    export(checkout, read_source(checkout), tree)
    assert sorted(path.name for path in tree.iterdir()) == [".gitignore", "pyproject.toml"]


def test_a_tag_of_the_version_with_a_dated_section_is_accepted() -> None:
    check_tag("v0.2.0", SOURCE, CHANGELOG)


@pytest.mark.parametrize("tag", ["v0.1.0", "0.2.0", "v0.2.0-rc1"])
def test_a_tag_of_another_version_is_refused(tag: str) -> None:
    with pytest.raises(ReleaseError, match=r"Expected v0\.2\.0"):
        check_tag(tag, SOURCE, CHANGELOG)


@pytest.mark.parametrize("section", ["", "## [0.2.0] - unreleased\n", "## [0x2.0] - 2026-12-01\n"])
def test_a_changelog_without_a_dated_section_is_refused(section: str) -> None:
    with pytest.raises(ReleaseError, match=r"no section of 0\.2\.0 with a date"):
        check_tag("v0.2.0", SOURCE, f"# Changelog\n\n{section}")


def test_the_names_of_pinned_packages_are_read() -> None:
    text = (
        "# by uv\n"
        "django==5.2.8 \\\n"
        "    --hash=sha256:00\n"
        "    # via vel==1\n"
        "psycopg[binary,pool]==3.3.0 ; sys_platform == 'linux' \\\n"
    )
    assert pinned_packages(text) == ["django", "psycopg"]
