"""Read the skills in directories of the host for each run, and store the changed ones.

Reading needs no database. Each package is stored in its own transaction, so that the first reading
of a large directory does not block other writers.

The contents of these directories are trusted as `local`: everyone who can write there can instruct
the agent. Therefore, the agent's own commands and file tools must not be able to write there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction
from django.db.models import Exists, OuterRef

from agents.kernel.row_hooks import Protects
from agents.models import Run
from agents.services.errors import InvalidRequest
from agents.services.runs.session_files import file_rules
from agents.settings import DataSettings
from skills_app.actions.versions import VersionDetails, delete_skill, store_package
from skills_app.library.package import Package
from skills_app.library.problems import InvalidSkill, Problem, SkillChanged, error
from skills_app.library.scopes import BUILT_IN, describe_scope, directory_of, directory_scope
from skills_app.library.search.document import analyse, document_of
from skills_app.library.sources.folder import read_folder
from skills_app.library.sources.watch import FoundPackage, Remembered, watch_directory
from skills_app.models import Skill, SkillVersion, Trust
from skills_app.settings import SkillSettings

BUILT_IN_DIRECTORY = Path(__file__).parent.parent / "builtin"

_MAX_REMEMBERED = 64
_PASSING = frozenset({"unreadable", "changing"})
"""Problems that may be temporary. They do not delete the rows of skills."""


@dataclass(frozen=True, slots=True)
class SourceRead:
    """The contents of a directory of skills.

    `problems` are messages by path, with the path "" for the directory itself.
    """

    scope: str
    packages: tuple[FoundPackage, ...]
    problems: Mapping[str, Sequence[Problem]] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """Return the names of the skills that the directory contains now."""
        return {found.head.name for found in self.packages}


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between a directory and its rows.

    `packages` are new or changed. `gone` are ids of skills without a package.
    """

    packages: tuple[FoundPackage, ...]
    gone: tuple[int, ...]
    quarantined: tuple[FoundPackage, ...] = ()
    """Packages whose bytes are in quarantine. They are not stored again under another trust."""

    def __bool__(self) -> bool:
        return bool(self.packages or self.gone)


_remembered: dict[str, Remembered] = {}
_lock = threading.Lock()


def read_sources(directories: Sequence[str], *, built_in: bool) -> list[SourceRead]:
    """Read all `directories`, and the built-in skills if `built_in`.

    A directory that is unreadable has a problem and no packages.
    """
    scopes = [*([BUILT_IN] if built_in else []), *map(directory_scope, dict.fromkeys(directories))]
    return [read_source(scope) for scope in scopes]


def read_source(scope: str) -> SourceRead:
    """Read the directory of one scope."""
    directory = _directory(scope)
    with _lock:
        remembered = _remembered.pop(scope, {})
    read = watch_directory(directory, remembered)
    with _lock:
        _remembered[scope] = read.remembered
        while len(_remembered) > _MAX_REMEMBERED:
            _remembered.pop(next(iter(_remembered)))
    return SourceRead(scope, tuple(read.packages), read.problems)


def changes_of(read: SourceRead) -> Changes:
    """Return the differences between `read` and the rows. Without changes, this is one query.

    An unreadable directory has no changes. If a package has a problem that may be temporary, no
    skill counts as gone.
    """
    if "" in read.problems:
        return Changes((), ())
    rows = Skill.objects.filter(scope=read.scope, is_deleted=False)
    known = {
        name: (pk, digest)
        for name, pk, digest in rows.values_list("name", "pk", "current__content_hash")
    }
    changed = [
        found
        for found in read.packages
        if known.get(found.head.name, (0, None))[1] != found.content_hash
    ]
    passing = any(
        problem.code in _PASSING for problems in read.problems.values() for problem in problems
    )
    gone = () if passing else tuple(known[name][0] for name in sorted(set(known) - read.names))
    if not changed:
        return Changes((), gone)
    # A review of the same bytes in another scope also ends their quarantine here.
    reviewed = SkillVersion.objects.filter(
        content_hash=OuterRef("content_hash"), trust=Trust.REVIEWED
    )
    bad = set(
        SkillVersion.objects.filter(
            ~Exists(reviewed),
            skill__scope=read.scope,
            trust=Trust.QUARANTINED,
            content_hash__in=[found.content_hash for found in changed],
        ).values_list("content_hash", flat=True)
    )
    return Changes(
        tuple(found for found in changed if found.content_hash not in bad),
        gone,
        tuple(found for found in changed if found.content_hash in bad),
    )


def quarantine_problems(changes: Changes) -> dict[str, list[Problem]]:
    """Return one problem for each package that is omitted because its bytes are in quarantine."""
    message = "It is in quarantine: review it, or change it in the directory."
    return {found.path or ".": [error("quarantined", message)] for found in changes.quarantined}


def package_of(scope: str, found: FoundPackage) -> Package | None:
    """Return the content of `found`, read again if necessary; None if it has changed since.

    Also analyses the package for the search, so that the transaction that stores it is short.
    """
    package = found.package
    if package is None:
        try:
            package = read_folder(_directory(scope).resolve() / found.path)
        except InvalidSkill:
            return None
        if package.content_hash != found.content_hash:
            return None
    analyse(document_of(package.head, package.body, [file.path for file in package.files]))
    return package


def store_found(scope: str, package: Package) -> None:
    """Store `package` as the current version of its skill in `scope`.

    Raises `SkillChanged` if another process changes the skill at the same time.
    """
    trust = Trust.BUILT_IN if scope == BUILT_IN else Trust.LOCAL
    store_package(scope, package, _details(scope), trust=trust)


@transaction.atomic
def remove_gone(scope: str, ids: Sequence[int]) -> None:
    """Delete the skills `ids` of a scope. Versions that runs have pinned stay."""
    reason = f"It is no longer in {describe_scope(scope)}, or is invalid."
    for skill in Skill.objects.filter(pk__in=ids, scope=scope, is_deleted=False).order_by("pk"):
        delete_skill(skill, _details(scope, reason))


def sync_source(read: SourceRead) -> None:
    """Update the rows of a directory. Use it where there is no event loop.

    Raises `SkillChanged` if another process changes a skill at the same time.
    """
    changes = changes_of(read)
    for package in _packages(read.scope, changes.packages):
        store_found(read.scope, package)
    if changes.gone:
        remove_gone(read.scope, changes.gone)


def _packages(scope: str, found: Sequence[FoundPackage]) -> Iterator[Package]:
    for one in found:
        package = package_of(scope, one)
        if package is None:
            raise SkillChanged(f"The skill {one.head.name} has just changed: try again.")
        yield package


def _directory(scope: str) -> Path:
    given = directory_of(scope)
    if given is None and scope != BUILT_IN:
        raise ValueError(f"The skills of {scope} are not in a directory.")
    return Path(given) if given is not None else BUILT_IN_DIRECTORY


def _details(scope: str, reason: str = "") -> VersionDetails:
    source = "release" if scope == BUILT_IN else "directory"
    return VersionDetails(source, reason=reason, origin=directory_of(scope) or "")


MAX_DIRECTORIES = 20
"""The maximum number of directories that one caller may name for a thread."""
MAX_PATH = 1000


def check_skill_directories(
    directories: Sequence[str], workspace_path: str, protects: Protects
) -> None:
    """Raise `InvalidRequest` if a path may not be a thread's directory of skills.

    `protects` returns whether agents cannot change a path relative to `workspace_path`. The
    directories need not exist: the host of a run checks that when the run starts.
    """
    if len(directories) > MAX_DIRECTORIES:
        raise InvalidRequest(f"{len(directories)} directories of skills; name {MAX_DIRECTORIES}.")
    for path in directories:
        if not os.path.isabs(path) or len(path) > MAX_PATH or not path.isprintable():
            raise InvalidRequest(
                f"A directory of skills must be an absolute path of at most {MAX_PATH} printable "
                "characters."
            )
        if location := _writable_place(path, workspace_path, protects):
            raise InvalidRequest(_refusal(path, location), code="skills_writable")


def usable_directories(run: Run) -> tuple[list[str], list[SourceRead]]:
    """Return (usable directories of skills of the run, refused ones with their problems).

    The directories of the settings come first, then those of the caller. Each run checks them
    again, because a link may have a new target.
    """
    named = dict.fromkeys([*SkillSettings.now().DIRECTORIES, *run.thread.skill_directories])
    protects = file_rules(run.thread).protects
    usable: list[str] = []
    refused: list[SourceRead] = []
    for path in named:
        if location := _writable_place(path, run.thread.workspace_path, protects):
            problem = error("writable", _refusal(path, location))
            refused.append(SourceRead(directory_scope(path), (), {"": [problem]}))
        else:
            usable.append(path)
    return usable, refused


def _writable_place(path: str, workspace_path: str, protects: Protects) -> Path | None:
    """Return a place that agents can write to and that contains `path` or is in it; else None."""
    directory = Path(path).resolve()
    if workspace_path and _is_protected(path, Path(workspace_path).resolve(), protects):
        workspace_path = ""
    places = [DataSettings.now().workspaces, *([Path(workspace_path)] if workspace_path else [])]
    for location in map(Path.resolve, places):
        if directory.is_relative_to(location) or location.is_relative_to(directory):
            return location
    return None


def _is_protected(path: str, workspace: Path, protects: Protects) -> bool:
    """Return whether the agent can neither change the directory nor replace its path."""
    directory = Path(path)
    if directory.resolve() != directory or workspace not in directory.parents:
        return False
    return protects(directory.relative_to(workspace).as_posix())


def _refusal(path: str, location: Path) -> str:
    return (
        f"The directory of skills {path} and {location}, where the agent writes, overlap: it could "
        "change its own skills. Put the skills elsewhere, or protect the directory."
    )
