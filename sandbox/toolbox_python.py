"""The interpreter that toolboxes are made for: the one that commands find in the sandbox."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.namespace import PYTHON

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
    """`short` is as 3.11. `abi` changes exactly when compiled packages no longer fit."""

    executable: Path
    version: str
    short: str
    abi: str


def python_facts() -> PythonFacts:
    """The system's Python as it is now; asked again only when the file has changed.

    Raises `SandboxUnavailable` where there is none.
    """
    path = Path(PYTHON)
    try:
        status = path.stat()
    except OSError as error:
        raise SandboxUnavailable(
            f"There is no {PYTHON} ({error.strerror}), which commands and toolboxes need. "
            "Install python3."
        ) from error
    return _ask(os.path.realpath(path), status.st_ino, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _ask(executable: str, inode: int, mtime: int, size: int) -> PythonFacts:
    asked = subprocess.run(
        [executable, "-I", "-S", "-c", _QUESTION],
        capture_output=True,
        text=True,
        env={},
        cwd="/",
        timeout=30,
        check=False,
    )
    if asked.returncode != 0:
        raise SandboxUnavailable(
            f"{executable} does not run: {asked.stderr.strip()[-300:]}. Install python3 again."
        )
    found = json.loads(asked.stdout)
    return PythonFacts(Path(PYTHON), found["version"], found["short"], found["abi"])
