"""Toolboxes: Python environments that an operator built and that commands can only read.

Below the directory of all toolboxes each name has a directory with one or more generations and a
file `current` that names the newest. A generation is never changed: replacing a toolbox makes
another one. No link is followed here, and nothing counts that somebody else could have written.

    NAME/current               the id of a generation
    NAME/<id>/manifest.json    what it holds; whoever uses the generation has a shared lock on it
    NAME/<id>/env/             the environment, shown to commands at /opt/toolbox
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.errors import SandboxError
from sandbox.namespace import ENVIRONMENT as SYSTEM
from sandbox.namespace import HOME
from sandbox.policy import Mount
from sandbox.toolbox_python import python_facts

TARGET = "/opt/toolbox"
"""Where commands find it. Built for this place: it must be mounted nowhere else."""
PYTHON_IN_IT = f"{TARGET}/bin/python3"
CURRENT = "current"
ENVIRONMENT = "env"
MANIFEST = "manifest.json"
FONT_CACHE = "share/vel/matplotlib"
"""In the environment: matplotlib's list of the fonts, which it would make anew in each process."""

_CONFIG = f"{HOME}/.config/matplotlib"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_THREADS = "4"
"""Threads of numpy's libraries: one for each processor of a large host would spend the limits on
processes and memory before anything is computed."""

VARIABLES = (
    ("VIRTUAL_ENV", TARGET),
    ("PATH", f"{TARGET}/bin:{SYSTEM['PATH']}"),
    ("MPLBACKEND", "Agg"),
    ("MPLCONFIGDIR", _CONFIG),
    *((f"{each}_NUM_THREADS", _THREADS) for each in ("OPENBLAS", "OMP", "MKL", "NUMEXPR")),
)
"""The environment variables of commands that have a toolbox."""


class ToolboxError(SandboxError):
    """A toolbox that cannot be made, or cannot be used. Nothing else is used in its place."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """One generation. `directory` holds it; sizes are bytes.

    `distributions` are (name, version) of all that is installed, `packages` the names of those
    that were asked for. `abi` is the interpreter's that it was built with.
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
        """What commands get to see, read-only."""
        fonts = (
            Mount(self.environment / FONT_CACHE / name, f"{_CONFIG}/{name}")
            for name in self.font_caches
        )
        return (Mount(self.environment, TARGET), *fonts)


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """`name`, if a toolbox can have it. Raises `ToolboxError`."""
    if not is_name(name):
        raise ToolboxError(
            f"{name!r} is no name of a toolbox: use 1 to 64 small letters, digits, '-' and '_', "
            "with a letter or digit at both ends."
        )
    return name


def mismatch(toolbox: Toolbox) -> str | None:
    """Why this host's Python cannot run the toolbox, with what to do; None when it can."""
    facts = python_facts()
    if facts.abi == toolbox.abi:
        return None
    return (
        f"The toolbox {toolbox.name!r} was built for Python {toolbox.python} ({toolbox.abi}), and "
        f"{facts.executable} is {facts.version} ({facts.abi}) now. Build it again: "
        f"vel toolbox create {toolbox.name} … --replace"
    )


def missing(name: str) -> ToolboxError:
    return ToolboxError(
        f"There is no toolbox {name!r} on this host. The operator builds it with: "
        f"vel toolbox create {name} PACKAGE…"
    )


def check_operators_own(status: os.stat_result, path: str, name: str) -> None:
    """Raises `ToolboxError` for what somebody other than root or this account could change."""
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ToolboxError(
            f"The toolbox {name!r} cannot be trusted: {path} belongs to uid {status.st_uid} with "
            f"mode {stat.S_IMODE(status.st_mode):04o}, so others can change it. Remove it and "
            f"build it again: vel toolbox create {name} … --replace"
        )


def parse_manifest(content: bytes, name: str, generation: str, directory: Path) -> Toolbox:
    """The generation in `directory` that `content` describes. Raises `ToolboxError`."""
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
