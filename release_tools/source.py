"""The commit of a release."""

from __future__ import annotations

import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path


class ReleaseError(Exception):
    """The release cannot be built. The message says why and, if known, what to do, in one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """A commit, with its time as a Unix timestamp and its version."""

    commit: str
    time: int
    version: str


def read_source(checkout: Path) -> Source:
    """Return the commit HEAD of a checkout.

    Raises:
        ReleaseError: `git status` shows uncommitted changes or untracked files, the checkout is not
            a Git repository, or git is missing.
    """
    if changes := _git(checkout, "status", "--porcelain").decode().splitlines():
        raise ReleaseError(
            f"The checkout has {len(changes)} uncommitted changes, which the release would not "
            "contain. Commit or remove them: git status shows them."
        )
    commit, time = _git(checkout, "log", "-1", "--format=%H %ct").decode().split()
    project = tomllib.loads(_git(checkout, "show", f"{commit}:pyproject.toml").decode())
    return Source(commit, int(time), project["project"]["version"])


def check_tag(tag: str, source: Source, changelog: str) -> None:
    """Check that a tag, the version and the changelog belong together.

    Raises:
        ReleaseError: The tag names another version, or the changelog has no date for it.
    """
    if tag != f"v{source.version}":
        raise ReleaseError(
            f"The tag {tag} does not belong to the version {source.version} of pyproject.toml. "
            f"Expected v{source.version}."
        )
    section = rf"^## \[{re.escape(source.version)}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(section, changelog, flags=re.MULTILINE):
        raise ReleaseError(
            f"CHANGELOG.md has no section of {source.version} with a date. Expected a heading "
            f"such as: ## [{source.version}] - 2026-12-01"
        )


def export(checkout: Path, source: Source, directory: Path) -> None:
    """Write the files of the commit into an empty directory, without any other files.

    The result does not depend on the umask, the user's settings of git or untracked files. Only
    attributes in the checkout's `.git/info/attributes` and of the system can change it.

    Raises:
        ReleaseError: git or tar is missing, or failed.
    """
    settings = (
        *("-c", "core.autocrlf=false", "-c", "core.attributesFile=/dev/null"),
        *("-c", "core.eol=lf", "-c", "tar.umask=022"),
    )
    archive = _git(checkout, *settings, "archive", "--format=tar", source.commit)
    # tarfile cannot extract safely before Python 3.11.4.
    extract = ["tar", "--extract", "--preserve-permissions", f"--directory={directory}"]
    try:
        done = subprocess.run(extract, input=archive, capture_output=True)
    except FileNotFoundError:
        raise ReleaseError("tar is not installed. Install it, and try again.") from None
    if done.returncode:
        problem = " ".join(done.stderr.decode(errors="replace").split())
        raise ReleaseError(f"tar failed: {problem}")


def _git(checkout: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(checkout), *words], capture_output=True)
    except FileNotFoundError:
        raise ReleaseError("git is not installed. Install it, and try again.") from None
    if done.returncode:
        problem = " ".join(done.stderr.decode(errors="replace").split())
        raise ReleaseError(f"git {words[0]} failed: {problem}")
    return done.stdout
