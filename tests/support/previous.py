"""The code of an earlier version, for tests with two versions at the same time."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

from tests.support.tar_files import extract

ROOT = Path(__file__).resolve().parents[2]


def git(*words: str) -> bytes | None:
    """Return the output of a git command in this checkout, or None if it fails."""
    # The checkout may belong to another account than that of the tests.
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def previous_commit() -> str:
    """Return the commit of the version before this one, or an empty text without a git history.

    `VEL_TEST_PREVIOUS` names it. Without that, it is the last release, or the commit before HEAD if
    there is no release.
    """
    tag = git("describe", "--tags", "--match", "v[0-9]*", "--abbrev=0", "HEAD~1")
    wanted = os.environ.get("VEL_TEST_PREVIOUS") or (tag.decode().strip() if tag else "HEAD~1")
    found = git("rev-parse", "--verify", "--quiet", f"{wanted}^{{commit}}")
    return found.decode().strip() if found else ""


def export(commit: str, directory: Path) -> None:
    """Write the files of a commit into a directory that exists."""
    archive = git("archive", "--format=tar", commit)
    if archive is None:
        raise RuntimeError(f"git cannot export {commit}.")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        extract(files, directory)
