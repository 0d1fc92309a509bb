"""The interpreter of toolboxes: the one that commands use in the sandbox."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.linux.namespace import PYTHON

_QUESTION = """
import json, sys, sysconfig
print(json.dumps({
    "version": ".".join(map(str, sys.version_info[:3])),
    "short": ".".join(map(str, sys.version_info[:2])),
    "abi": sysconfig.get_config_var("SOABI"),
}))
"""


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """`short` is for example 3.11. `abi` changes exactly when compiled packages no longer work."""

    executable: Path
    version: str
    short: str
    abi: str


def python_facts() -> PythonFacts:
    """Return the facts of the system's current Python. Runs it only if the file has changed.

    Raises `SandboxUnavailable` if it is missing.
    """
    path = Path(PYTHON)
    try:
        status = path.stat()
    except OSError as error:
        raise SandboxUnavailable(
            f"There is no {PYTHON} ({error.strerror}), which commands and toolboxes need. "
            "Install python3."
        ) from error
    return _query(os.path.realpath(path), status.st_ino, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _query(executable: str, inode: int, mtime: int, size: int) -> PythonFacts:
    result = subprocess.run(
        [executable, "-I", "-S", "-c", _QUESTION],
        capture_output=True,
        text=True,
        env={},
        cwd="/",
        timeout=30,
        check=False,
    )
    if result.returncode != 0:
        raise SandboxUnavailable(
            f"{executable} does not run: {result.stderr.strip()[-300:]}. Install python3 again."
        )
    found = json.loads(result.stdout)
    return PythonFacts(Path(PYTHON), found["version"], found["short"], found["abi"])
