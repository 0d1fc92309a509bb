"""Check programs with mypy, as the author of a program does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.hang import HANG

ROOT = Path(__file__).parents[2]


def type_checks(
    directory: Path, *files: str, path: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Check `files` strictly, with the packages in `path`. `directory` gets the cache."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"),
            *("--config-file=", "--cache-dir", str(directory / "cache"), *files),
        ],
        cwd=directory,
        env={"MYPYPATH": str(path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
