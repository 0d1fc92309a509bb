"""Building a toolbox: pip fills an environment, and its packages are tried in a sandbox."""

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

from sandbox.toolbox import (
    ENVIRONMENT,
    MANIFEST,
    Toolbox,
    ToolboxError,
    check_name,
    mismatch,
)
from sandbox.toolbox_contents import measure, settle
from sandbox.toolbox_environment import Environment
from sandbox.toolbox_find import find_toolbox, toolbox_names
from sandbox.toolbox_python import PythonFacts, python_facts
from sandbox.toolbox_requirements import check_requirement, normalised, read_requirements
from sandbox.toolbox_store import open_store
from sandbox.toolbox_trial import try_in_sandbox

_NAMES_SHOWN = 8
_DISTRIBUTION = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")
"""Names go into prompts, where a sentence would be read as one."""


class IfPresent(Enum):
    """What becomes of a toolbox that has the name already."""

    REFUSE = "refuse"
    KEEP = "keep"
    """Unless this host's Python cannot run it any more: then it is replaced."""
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class ToolboxRequest:
    """`requirements` and the lines of `files` are what pip is asked for.

    `allow_source` lets pip build packages from source, which runs their code with the rights of
    this process; else wheels only. `index_url` takes the place of pip's own index. With `impatient`
    pip soon gives up where no index can be reached, unless the environment says otherwise.
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
    """Build the toolbox in `base`; the bool says whether it was built and not kept.

    `note` is told what is going on. Raises `ToolboxError`, `SandboxSetupError` or OSError; then
    nothing has changed.
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
        raise ToolboxError(f"--index-url {request.index_url!r}: begin it with https://")
    return wanted, listed


def _present(base: Path, name: str, if_present: IfPresent) -> Toolbox | None:
    if if_present is IfPresent.REPLACE or name not in toolbox_names(base):
        return None
    if if_present is IfPresent.REFUSE:
        raise ToolboxError(
            f"There is a toolbox {name!r} already: --replace builds it again, --if-missing keeps "
            "it."
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
    """Settle the rights of all files and write the manifest, which makes a generation complete."""
    installed = {
        normalised(each.metadata["Name"]): each
        for each in distributions(path=[str(environment.site)])
    }
    if odd := [each for each in installed if not _DISTRIBUTION.fullmatch(each)]:
        raise ToolboxError(f"A package calls itself {odd[0]!r}, which is no name. Leave it out.")
    # pip marks what it was asked for by name, and leaves what only came along unmarked.
    asked = {
        each: found
        for each, found in sorted(installed.items())
        if each != "pip" and found.read_text("REQUESTED") is not None
    }
    if not asked:
        raise ToolboxError(
            "pip has installed none of this into the toolbox: look for what sends it elsewhere, "
            "or for markers that leave all of it out (pip config list)."
        )
    settle(environment.directory)
    trial = try_in_sandbox(environment.directory, _modules(asked.values()))
    for line in trial.notes:
        note(line)
    trial.keep_font_caches(environment.directory)
    settle(environment.directory)
    digest, size = measure(environment.directory)
    manifest = {
        "name": name,
        # Of a wheel its name alone: where it lay on this host is nobody's business.
        "requirements": [os.path.basename(each) for each in requirements],
        "packages": list(asked),
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
    """The importable names that distributions bring along at the top."""
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
