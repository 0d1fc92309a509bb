"""Programs without a project, run in their own processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.agents.sdk import forked_program
from tests.support.forking import Forked, run_to_end
from tests.support.hang import HANG
from tests.support.shared import shared_directory

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


@contextmanager
def started(
    program: str, directory: Path, cache: Path, **variables: str
) -> Iterator[tuple[Forked, IO[str]]]:
    """Start the program in a forked process, with a standard input that stays open.

    Yield the process and its output.
    """
    (given, give), (told, tell) = os.pipe(), os.pipe()
    with (
        Forked(
            forked_program.__name__,
            arguments=[program],
            environment={**environment(directory, cache), **variables},
            cwd=directory,
            descriptors=[given, tell, 2],
        ) as process,
        open(told, encoding="utf-8") as output,
    ):
        os.close(given)
        os.close(tell)
        try:
            yield process, output
        finally:
            os.close(give)


def run(program: str, directory: Path, cache: Path, fresh: bool = False, **variables: str) -> str:
    """Run the program; return its output. It must succeed and leave no temporary file.

    The process is forked (see `forked_program`), or a new interpreter if `fresh`.
    """
    variables = {**environment(directory, cache), **variables}
    if fresh:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=directory,
            env=variables,
            input="",
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
    else:
        done = run_to_end(
            forked_program.__name__, [program], environment=variables, cwd=directory, timeout=HANG
        )
    if done.returncode or done.stderr:
        pytest.fail(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    assert not [*(directory / "tmp").iterdir()]
    return done.stdout


@pytest.fixture(scope="session")
def cache() -> Path:
    """Return the directory in which the first program keeps an empty database for the others.

    All processes of a test run share it.
    """
    return shared_directory() / "cache-of-programs"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a directory that every account can enter."""
    for parent in (tmp_path, *tmp_path.parents[:3]):
        if parent.stat().st_uid == os.geteuid() and parent.stat().st_mode & 0o077 == 0:
            parent.chmod(0o711)
    return tmp_path
