"""Skills in directories of the host: read for each run, and stored if they have changed.

Reading needs no database. Each package is stored in its own transaction, so that the first reading
of a large directory does not block other writers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction
from django.db.models import Exists, OuterRef

from skills_app.actions.versions import VersionDetails, delete_skill, store_package
from skills_app.library.errors import InvalidSkill, SkillChanged
from skills_app.library.package import Package
from skills_app.library.problems import Problem, error
from skills_app.library.scopes import BUILT_IN, describe_scope, directory_of, directory_scope
from skills_app.library.search.document import analyse, document_of
from skills_app.library.sources.folder import read_folder
from skills_app.library.sources.watch import FoundPackage, Remembered, watch_directory
from skills_app.models import Skill, SkillVersion, Trust

BUILT_IN_DIRECTORY = Path(__file__).parent.parent / "builtin"

_MAX_REMEMBERED = 64
_PASSING = frozenset({"unreadable", "changing"})
"""Problems that may be gone for another worker or the next run: they delete no skills."""


@dataclass(frozen=True, slots=True)
class SourceRead:
    """The contents of a directory. `problems` are messages by path; "" is the directory itself."""

    scope: str
    packages: tuple[FoundPackage, ...]
    problems: Mapping[str, Sequence[Problem]] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """Return the names of exactly those skills that exist now, regardless of the rows."""
        return {found.head.name for found in self.packages}


@dataclass(frozen=True, slots=True)
class Changes:
    """Differences between a directory and its rows. `gone` are ids of skills without a package."""

    packages: tuple[FoundPackage, ...]
    gone: tuple[int, ...]
    quarantined: tuple[FoundPackage, ...] = ()
    """Their bytes are in quarantine: they are not stored again under another trust."""

    def __bool__(self) -> bool:
        return bool(self.packages or self.gone)


_remembered: dict[str, Remembered] = {}
_lock = threading.Lock()


def read_sources(directories: Sequence[str], *, built_in: bool) -> list[SourceRead]:
    """Read each directory. An unreadable one has a problem instead of packages."""
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
    """Return the parts of `read` that are not in the rows. One query if nothing has changed."""
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
    # A review of the same bytes in another scope ends their quarantine here as well.
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
    """Return problems for packages that are omitted because their bytes are in quarantine."""
    message = "It is in quarantine: somebody has to review it, or change it in the directory."
    return {found.path or ".": [error("quarantined", message)] for found in changes.quarantined}


def package_of(scope: str, found: FoundPackage) -> Package | None:
    """Return its package, read again if necessary; None if it has changed or disappeared.

    It is analysed for the search here, outside of the transaction that stores it.
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
    """Make `package` the current version in `scope`. Raises `SkillChanged` in a race."""
    trust = Trust.BUILT_IN if scope == BUILT_IN else Trust.LOCAL
    store_package(scope, package, _details(scope), trust=trust)


@transaction.atomic
def remove_gone(scope: str, ids: Sequence[int]) -> None:
    """Delete the skills `ids` of a scope; the versions that runs have pinned stay."""
    reason = f"It is not in {describe_scope(scope)} any more, or cannot be taken."
    for skill in Skill.objects.filter(pk__in=ids, scope=scope, is_deleted=False).order_by("pk"):
        delete_skill(skill, _details(scope, reason))


def sync_source(read: SourceRead) -> None:
    """Do all of the above in order, for callers without an event loop. Raises `SkillChanged`."""
    changes = changes_of(read)
    for package in _packages(read.scope, changes.packages):
        store_found(read.scope, package)
    if changes.gone:
        remove_gone(read.scope, changes.gone)


def _packages(scope: str, found: Sequence[FoundPackage]) -> Iterator[Package]:
    for one in found:
        package = package_of(scope, one)
        if package is None:
            raise SkillChanged(f"The skill {one.head.name} has changed at this moment: look again.")
        yield package


def _directory(scope: str) -> Path:
    given = directory_of(scope)
    if given is None and scope != BUILT_IN:
        raise ValueError(f"The skills of {scope} lie in no directory.")
    return Path(given) if given is not None else BUILT_IN_DIRECTORY


def _details(scope: str, reason: str = "") -> VersionDetails:
    source = "release" if scope == BUILT_IN else "directory"
    return VersionDetails(source, reason=reason, origin=directory_of(scope) or "")
