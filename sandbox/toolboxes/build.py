"""Build a toolbox: pip fills an environment, and a sandbox tests its packages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import Distribution, distributions
from pathlib import Path

from sandbox.toolboxes.contents import measure, settle
from sandbox.toolboxes.environment import Environment
from sandbox.toolboxes.find import find_toolbox, toolbox_names
from sandbox.toolboxes.python import PythonFacts, python_facts
from sandbox.toolboxes.requirements import check_requirement, normalised, read_requirements
from sandbox.toolboxes.store import open_store
from sandbox.toolboxes.toolbox import (
    ENVIRONMENT,
    MANIFEST,
    Toolbox,
    ToolboxError,
    check_name,
    mismatch,
)
from sandbox.toolboxes.trial import try_in_sandbox

_NAMES_SHOWN = 8
_DISTRIBUTION = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")
"""Names become part of prompts, where a sentence could act as an instruction."""


class IfPresent(Enum):
    """What happens if a toolbox with this name exists."""

    REFUSE = "refuse"
    KEEP = "keep"
    """Keep it if this host's Python can run it; otherwise replace it."""
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class ToolboxRequest:
    """`requirements` and the lines of `files` are the arguments of pip.

    `allow_source` lets pip build packages from source, which runs their code with the rights of
    this process. Otherwise pip uses only wheels. `index_url` replaces pip's own index. With
    `impatient`, pip soon gives up if it cannot reach an index, unless the environment says
    otherwise.
    """

    name: str
    requirements: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    index_url: str = ""
    allow_source: bool = False
    impatient: bool = False


def create_toolbox(
    base: Path,
    request: ToolboxRequest,
    if_present: IfPresent = IfPresent.REFUSE,
    note: Callable[[str], None] = lambda line: None,
) -> tuple[Toolbox, bool]:
    """Build the toolbox in `base`. The bool is true if it was built, and false if it was kept.

    `note` is called with progress messages. Raises `ToolboxError`, `SandboxSetupError` or OSError;
    in this case nothing has changed.
    """
    check_name(request.name)
    wanted, listed = _checked(request)
    facts = python_facts()
    with open_store(base, lambda: note("Waiting for another build to end.")) as store:
        kept = _present(store.base, request.name, if_present)
        if kept is not None:
            return kept, False
        with store.staging() as staged:
            note(f"Installing {_shown([*wanted, *listed])} for Python {facts.version}.")
            environment = Environment(staged / ENVIRONMENT, facts, store.lock)
            file = None
            if listed:
                file = staged / "requirements.txt"
                file.write_text("".join(f"{line}\n" for line in listed))
            environment.install(
                wanted,
                file,
                index_url=request.index_url,
                allow_source=request.allow_source,
                impatient=request.impatient,
            )
            environment.complete()
            _try_and_describe(staged, environment, request.name, [*wanted, *listed], facts, note)
            store.publish(request.name, staged)
    return find_toolbox(base, request.name), True


def _checked(request: ToolboxRequest) -> tuple[list[str], list[str]]:
    source = request.allow_source
    wanted = [check_requirement(each, allow_source=source) for each in request.requirements]
    listed = [
        line for file in request.files for line in read_requirements(file, allow_source=source)
    ]
    if not wanted and not listed:
        raise ToolboxError("Name at least one package, as: vel toolbox create data pandas")
    if request.index_url and not request.index_url.startswith(("https://", "http://", "file:///")):
        raise ToolboxError(f"Invalid --index-url {request.index_url!r}: use an https:// address.")
    return wanted, listed


def _present(base: Path, name: str, if_present: IfPresent) -> Toolbox | None:
    if if_present is IfPresent.REPLACE or name not in toolbox_names(base):
        return None
    if if_present is IfPresent.REFUSE:
        raise ToolboxError(
            f"The toolbox {name!r} already exists. Use --replace to build it again, or "
            "--if-missing to keep it."
        )
    found = find_toolbox(base, name)
    return found if mismatch(found) is None else None


def _try_and_describe(
    staged: Path,
    environment: Environment,
    name: str,
    requirements: list[str],
    facts: PythonFacts,
    note: Callable[[str], None],
) -> None:
    """Set the modes of all files and write the manifest, which completes the generation."""
    installed = {
        normalised(each.metadata["Name"]): each
        for each in distributions(path=[str(environment.site)])
    }
    if odd := [each for each in installed if not _DISTRIBUTION.fullmatch(each)]:
        raise ToolboxError(f"A package has the invalid name {odd[0]!r}. Leave it out.")
    # pip marks the requested packages; their dependencies have no mark.
    requested = {
        each: found
        for each, found in sorted(installed.items())
        if each != "pip" and found.read_text("REQUESTED") is not None
    }
    if not requested:
        raise ToolboxError(
            "pip has installed no requested package into the toolbox. Look for settings that "
            "change its target (pip config list), or for markers that exclude all packages."
        )
    settle(environment.directory)
    trial = try_in_sandbox(environment.directory, _modules(requested.values()))
    for line in trial.notes:
        note(line)
    trial.keep_font_caches(environment.directory)
    settle(environment.directory)
    digest, size = measure(environment.directory)
    manifest = {
        "name": name,
        # Only the file name of a wheel: its path on this host is private.
        "requirements": [os.path.basename(each) for each in requirements],
        "packages": list(requested),
        "distributions": [
            {"name": each, "version": found.version} for each, found in sorted(installed.items())
        ],
        "python": facts.version,
        "abi": facts.abi,
        "built_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "digest": digest,
        "size": size,
        "font_caches": sorted(trial.font_caches),
    }
    (staged / "requirements.txt").unlink(missing_ok=True)
    file = staged / MANIFEST
    file.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    file.chmod(0o644)


def _modules(found: Iterable[Distribution]) -> list[str]:
    """The top-level modules of the distributions that can be imported."""
    names: dict[str, None] = {}
    for each in found:
        for file in each.files or ():
            first = file.parts[0]
            if len(file.parts) == 2 and file.name == "__init__.py" and first.isidentifier():
                names[first] = None
            elif len(file.parts) == 1 and file.suffix == ".py" and file.stem.isidentifier():
                names[file.stem] = None
    return [name for name in names if not name.startswith("_")]


def _shown(requirements: list[str]) -> str:
    names = [os.path.basename(each.split()[0]) for each in requirements]
    more = [f"{len(names) - _NAMES_SHOWN} more"] if len(names) > _NAMES_SHOWN else []
    return ", ".join([*names[:_NAMES_SHOWN], *more])
