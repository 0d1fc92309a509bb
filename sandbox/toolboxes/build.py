"""Build of a toolbox: pip fills an environment, and a sandbox tests its packages.

The test imports all packages once, in a sandbox: their code never runs outside a sandbox.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import Distribution, distributions
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.policy import Limits, Mount, SandboxPolicy
from sandbox.toolboxes.contents import measure, settle
from sandbox.toolboxes.environment import Environment
from sandbox.toolboxes.find import find_toolbox, toolbox_names
from sandbox.toolboxes.store import open_store
from sandbox.toolboxes.toolbox import (
    ENVIRONMENT,
    FONT_CACHE,
    MANIFEST,
    PYTHON_IN_IT,
    TARGET,
    VARIABLES,
    PythonFacts,
    Toolbox,
    ToolboxError,
    check_name,
    mismatch,
    python_facts,
)
from sandbox.uids import uid_for

_NAMES_SHOWN = 8
_DISTRIBUTION = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")
"""Names become part of prompts, where a sentence could act as an instruction."""


class IfPresent(Enum):
    """What to do if a toolbox with the requested name exists."""

    REFUSE = "refuse"
    KEEP = "keep"
    """Keep the toolbox if this host's Python can run it; otherwise replace it."""
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class ToolboxRequest:
    """A toolbox to build. `requirements` and the lines of `files` are arguments of pip.

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
    """Build a toolbox in `base`. Return it, and whether it was built (False: it was kept).

    `note` is called with progress messages. After an error, nothing has changed.

    Raises:
        ToolboxError: The request is invalid, pip fails, or a package is not acceptable.
        SandboxUnavailable: The system's Python is missing or does not run.
        SandboxSetupError: Commands could not reach `base`.
        OSError: The files cannot be written.
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
    """Test the packages, set the modes of all files, and write the manifest.

    The manifest completes the generation.
    """
    installed = {
        normalised(each.metadata["Name"]): each
        for each in distributions(path=[str(environment.site)])
    }
    if odd := [each for each in installed if not _DISTRIBUTION.fullmatch(each)]:
        raise ToolboxError(f"A package has the invalid name {odd[0]!r}. Leave it out.")
    # pip marks the requested packages; dependencies have no mark.
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
        # Only the file name of a wheel, because its path on this host is private.
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
    """Return the top-level modules of the distributions that can be imported."""
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


_VERSION = r"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_NAMED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"\s*(?:\[[A-Za-z0-9._, -]*\])?"
    rf"\s*(?:\(?\s*{_VERSION}(?:\s*,\s*{_VERSION})*\s*\)?)?"
    r"\s*(?:;[A-Za-z0-9_.'\"=<>!~(), -]+)?"
)
_HASH = re.compile(r"\s--hash=(?:sha256|sha384|sha512):[0-9a-f]+")
_FILE_BYTES = 1_000_000


def check_requirement(text: str, *, allow_source: bool = False) -> str:
    """Return a requirement for pip if it is valid: a name with versions, or a wheel on this host.

    With `allow_source`, a URL or a path of a package that is built here is valid, too. Raises
    `ToolboxError`.
    """
    wanted = text.strip()
    if not wanted or not wanted.isprintable():
        raise ToolboxError(f"{text!r} is not a requirement. Use a form like 'pandas>=2'.")
    if wanted.startswith("-"):
        raise ToolboxError(
            f"{wanted!r} is an option, not a requirement. Pass options to vel, which accepts "
            "--index-url, --requirement and --allow-source."
        )
    if _NAMED.fullmatch(wanted) and not wanted.endswith(".whl"):
        return wanted
    path = Path(wanted)
    if wanted.endswith(".whl") and path.is_file():
        return str(path.resolve())
    if allow_source:
        return str(path.resolve()) if path.exists() else wanted
    raise ToolboxError(
        f"{wanted!r} is neither a package name with versions, like 'pandas>=2', nor a wheel on "
        "this host. A package that is built from source runs its own code with your rights. To "
        "allow this, use --allow-source."
    )


def read_requirements(path: Path, *, allow_source: bool = False) -> list[str]:
    """Return the requirements of a file, without comments.

    Hashes are kept. Options of pip are refused with `ToolboxError`.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES + 1).decode()
    except OSError as error:
        raise ToolboxError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise ToolboxError(
            f"{path} is not UTF-8 text. Write one requirement on each line."
        ) from None
    if len(text) > _FILE_BYTES:
        raise ToolboxError(f"{path} is longer than {_FILE_BYTES:,} bytes. Use a shorter file.")
    found = []
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        wanted = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not wanted:
            continue
        hashes = [each.group().strip() for each in _HASH.finditer(wanted)]
        try:
            bare = check_requirement(_HASH.sub("", wanted), allow_source=allow_source)
        except ToolboxError as error:
            raise ToolboxError(f"{path}: {error}") from None
        found.append(" ".join([bare, *hashes]))
    return found


def normalised(name: str) -> str:
    """Return the canonical spelling of a distribution's name, as in the package index."""
    return re.sub(r"[-_.]+", "-", name).lower()


_SECONDS = 120.0
_FONT_CACHE_BYTES = 4_000_000
_PROGRAM = """
import importlib, json, os, pathlib, sys
failed, fonts = {}, {}
for name in json.loads(sys.stdin.read()):
    try:
        importlib.import_module(name)
        if name == "matplotlib":
            importlib.import_module("matplotlib.font_manager")
            for file in pathlib.Path(os.environ["MPLCONFIGDIR"]).glob("fontlist-*.json"):
                fonts[file.name] = file.read_text()
    except BaseException as error:
        failed[name] = f"{type(error).__name__}: {error}"[:200]
print("\\n" + json.dumps([failed, fonts]))
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of the test. `notes` are lines for the operator.

    `font_caches` are the cache files of matplotlib, by name.
    """

    notes: list[str] = field(default_factory=list)
    font_caches: dict[str, str] = field(default_factory=dict)

    def keep_font_caches(self, environment: Path) -> None:
        """Copy the font caches to the directory that `Toolbox.mounts` uses."""
        if self.font_caches:
            directory = environment / FONT_CACHE
            directory.mkdir(parents=True)
            for name, content in self.font_caches.items():
                (directory / name).write_text(content)


def try_in_sandbox(environment: Path, modules: list[str]) -> Trial:
    """Import `modules` in a sandbox for at most two minutes, with the default memory limits.

    Failed imports, and a host without a sandbox, only become notes. Raises `SandboxSetupError` if
    commands could not reach the environment.
    """
    policy = SandboxPolicy(
        mounts=(Mount(environment, TARGET),),
        working_dir="/tmp",  # noqa: S108 - the sandbox's own
        timeout=_SECONDS,
        limits=Limits(output=_FONT_CACHE_BYTES),
        environment=VARIABLES,
        uid=uid_for(0) if os.geteuid() == 0 else None,
        python=PYTHON_IN_IT,
    )
    try:
        sandbox = BubblewrapSandbox(policy)
    except SandboxUnavailable:
        return Trial(["Not tested: this host cannot run a sandbox (vel doctor shows the reason)."])
    result = sandbox.start_python(_PROGRAM, stdin=json.dumps(modules).encode()).wait()
    try:
        failed, fonts = json.loads(result.stdout.splitlines()[-1])
        notes = [f"In the sandbox {name} cannot be imported: {why}" for name, why in failed.items()]
        caches = {name: text for name, text in fonts.items() if _is_font_cache(name, text)}
    except (ValueError, LookupError, TypeError, AttributeError):
        end = " ".join(result.stderr.split())[-300:]
        return Trial([f"The trial in the sandbox ended with {result.exit_code}: {end}"])
    return Trial(notes, caches)


def _is_font_cache(name: str, text: str) -> bool:
    plain = os.path.basename(name) == name and name.startswith("fontlist-")
    return plain and isinstance(json.loads(text), dict)
