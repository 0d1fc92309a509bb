"""Toolboxes: Python environments that an operator builds and that commands can only read.

Each toolbox has a directory with one or more generations and a file `current` that names the
newest. A generation never changes; replacing a toolbox creates another generation. Links are not
followed here, and files that another account could have written are not trusted.

    NAME/current               the id of a generation
    NAME/<id>/manifest.json    its description; a user of the generation has a shared lock on it
    NAME/<id>/env/             the environment, mounted for commands at /opt/toolbox
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.linux.namespace import ENVIRONMENT as SYSTEM
from sandbox.linux.namespace import HOME, PYTHON
from sandbox.policy import Mount

TARGET = "/opt/toolbox"
"""The path for commands. The environment is built for this path and works at no other path."""
PYTHON_IN_IT = f"{TARGET}/bin/python3"
CURRENT = "current"
ENVIRONMENT = "env"
MANIFEST = "manifest.json"
FONT_CACHE = "share/vel/matplotlib"
"""In the environment: matplotlib's font list, which each process would otherwise build again."""

_CONFIG = f"{HOME}/.config/matplotlib"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_THREADS = "4"
"""Threads of numpy's libraries. One thread for each processor of a large host would use up the
limits of processes and memory before the computation starts."""

VARIABLES = (
    ("VIRTUAL_ENV", TARGET),
    ("PATH", f"{TARGET}/bin:{SYSTEM['PATH']}"),
    ("MPLBACKEND", "Agg"),
    ("MPLCONFIGDIR", _CONFIG),
    *((f"{each}_NUM_THREADS", _THREADS) for each in ("OPENBLAS", "OMP", "MKL", "NUMEXPR")),
)
"""The environment variables of commands that have a toolbox."""


class ToolboxError(SandboxError):
    """A toolbox cannot be created or used. There is no fallback."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """One generation of a toolbox, in `directory`. Sizes are in bytes.

    `distributions` are (name, version) of all installed packages, `packages` the names of the
    requested ones. `abi` is that of the interpreter that built the generation.
    """

    name: str
    generation: str
    directory: Path
    requirements: tuple[str, ...]
    packages: tuple[str, ...]
    distributions: tuple[tuple[str, str], ...]
    python: str
    abi: str
    built_at: str
    digest: str
    size: int
    font_caches: tuple[str, ...] = ()

    @property
    def environment(self) -> Path:
        return self.directory / ENVIRONMENT

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Return the read-only mounts with which commands see the toolbox."""
        fonts = (
            Mount(self.environment / FONT_CACHE / name, f"{_CONFIG}/{name}")
            for name in self.font_caches
        )
        return (Mount(self.environment, TARGET), *fonts)


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """Return `name` if it is a valid toolbox name. Raises `ToolboxError`."""
    if not is_name(name):
        raise ToolboxError(
            f"{name!r} is not a valid toolbox name: use 1 to 64 lower-case letters, digits, '-' "
            "and '_', with a letter or digit at both ends."
        )
    return name


def mismatch(toolbox: Toolbox) -> str | None:
    """Return why this host's Python cannot run the toolbox, and what to do; None if it can."""
    facts = python_facts()
    if facts.abi == toolbox.abi:
        return None
    return (
        f"The toolbox {toolbox.name!r} was built for Python {toolbox.python} ({toolbox.abi}), but "
        f"{facts.executable} is now {facts.version} ({facts.abi}). Build it again: "
        f"vel toolbox create {toolbox.name} … --replace"
    )


def missing(name: str) -> ToolboxError:
    return ToolboxError(
        f"There is no toolbox {name!r} on this host. The operator builds it with: "
        f"vel toolbox create {name} PACKAGE…"
    )


def check_operators_own(status: os.stat_result, path: str, name: str) -> None:
    """Raise `ToolboxError` if an account other than root or this one could change the path."""
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ToolboxError(
            f"The toolbox {name!r} cannot be trusted: {path} belongs to uid {status.st_uid} with "
            f"mode {stat.S_IMODE(status.st_mode):04o}, so others can change it. Remove it and "
            f"build it again: vel toolbox create {name} … --replace"
        )


def parse_manifest(content: bytes, name: str, generation: str, directory: Path) -> Toolbox:
    """Parse the manifest of the generation in `directory`. Raises `ToolboxError`."""
    try:
        raw: dict[str, Any] = json.loads(content)
        return Toolbox(
            name=name,
            generation=generation,
            directory=directory,
            requirements=tuple(raw["requirements"]),
            packages=tuple(raw["packages"]),
            distributions=tuple((each["name"], each["version"]) for each in raw["distributions"]),
            python=raw["python"],
            abi=raw["abi"],
            built_at=raw["built_at"],
            digest=raw["digest"],
            size=raw["size"],
            font_caches=tuple(raw["font_caches"]),
        )
    except (ValueError, LookupError, TypeError) as error:
        raise ToolboxError(
            f"The toolbox {name!r} is damaged: its {MANIFEST} cannot be read ({error!r}). "
            f"Build it again: vel toolbox create {name} … --replace"
        ) from error


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
    """Facts about a Python interpreter. `short` is for example 3.11.

    `abi` changes exactly when compiled packages no longer work.
    """

    executable: Path
    version: str
    short: str
    abi: str


def python_facts() -> PythonFacts:
    """Return the facts about the system's Python.

    Runs the interpreter only if its file has changed. Raises `SandboxUnavailable` if it is missing.
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
