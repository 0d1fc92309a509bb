"""Packages of npm's registry at exactly the versions of a lock file, kept in a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REQUIRED
from tests.support.hang import HANG

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vel-tests" / "npm"
INSTALL = [
    *("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
    *("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"),
]


def packages(directory: Path) -> Path:
    """Return the parent of `node_modules` for the lock file in `directory`. Install it if missing.

    If npm's registry is unavailable, the test is skipped; in CI it fails.
    """
    names = ("package.json", "package-lock.json")
    content = b"".join((directory / name).read_bytes() for name in names)
    place = CACHE / hashlib.sha256(content).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        # Tests of several processes may need the same packages.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            for name in names:
                shutil.copy(directory / name, place / name)
            problem = _install(place)
            if problem:
                reason = f"needs the npm registry for {directory.name}: {problem}"
                if REQUIRED:
                    pytest.fail(reason)
                pytest.skip(reason)
            (place / "complete").touch()
    return place


def _install(place: Path) -> str:
    """Install the packages. Return the error, or ""."""
    try:
        done = subprocess.run(INSTALL, cwd=place, capture_output=True, text=True, timeout=HANG)
    except subprocess.TimeoutExpired:
        return f"it took longer than {HANG:g} s"
    # The lines after the first ones are a stack trace.
    return done.stderr.strip()[:300] if done.returncode else ""
