"""Programs without a project, run in their own processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hang import HANG

ROOT = Path(__file__).parents[3]
VARIABLES = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "VEL_SECRET_KEY", "ANTHROPIC_API_KEY")


def environment(home: Path, cache: Path) -> dict[str, str]:
    """Return a minimal environment without settings or keys. All data is stored in `home`."""
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(temporary),
        "VEL_DATA_DIR": str(home / "data"),
        "XDG_CACHE_HOME": str(cache),
    }


def start(
    program: str | Path, directory: Path, cache: Path, **variables: str
) -> subprocess.Popen[str]:
    arguments = ["-c", program] if isinstance(program, str) else [str(program)]
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=directory,
        env={**environment(directory, cache), **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program: str | Path, directory: Path, cache: Path, **variables: str) -> str:
    """Run the program; return its output. It must succeed and leave no temporary file."""
    out, err = start(program, directory, cache, **variables).communicate(timeout=HANG)
    if err:
        pytest.fail(f"{out}\n{err}")
    assert not [*(directory / "tmp").iterdir()]
    return out


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory in which the first program keeps an empty database for the others."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a directory that every account can enter."""
    for parent in (tmp_path, *tmp_path.parents[:3]):
        if parent.stat().st_uid == os.geteuid() and parent.stat().st_mode & 0o077 == 0:
            parent.chmod(0o711)
    return tmp_path
