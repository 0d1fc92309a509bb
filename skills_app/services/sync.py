"""Skills that lie in directories of the host: read anew for each run, stored when they changed.

Reading needs no database and is not done in a transaction; `sync_source` is.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skills_app.conf import skill_settings
from skills_app.models import Skill, Trust
from skills_app.package import Package
from skills_app.problems import Problem, Severity
from skills_app.scopes import BUILT_IN, directory_scope
from skills_app.services.versions import VersionDetails, delete_skill, store_package
from skills_app.sources.discover import read_directory

BUILT_IN_DIRECTORY = Path(__file__).parent.parent / "builtin"

_Signature = tuple[tuple[str, int, int, int, int], ...]
_MAX_REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class SourceRead:
    """What a directory holds. `problems` of packages that were left out, by their paths."""

    scope: str
    packages: tuple[Package, ...]
    problems: Mapping[str, Sequence[Problem]] = field(default_factory=dict)


_remembered: dict[str, tuple[_Signature, SourceRead]] = {}
_lock = threading.Lock()


def read_sources(directories: Sequence[str], *, built_in: bool) -> list[SourceRead]:
    """Each directory as it is now. One that cannot be read has a problem instead of packages.

    What has not changed by its files' times, sizes and inodes is not read again.
    """
    reads = [_read(BUILT_IN, BUILT_IN_DIRECTORY)] if built_in else []
    reads += [_read(directory_scope(path), Path(path)) for path in dict.fromkeys(directories)]
    return reads


def sync_source(read: SourceRead) -> None:
    """Make the rows of a scope what its directory holds. Raises `SkillChanged` in a race.

    A directory that cannot be read leaves the rows as they are.
    """
    if "" in read.problems:
        return
    trust = Trust.BUILT_IN if read.scope == BUILT_IN else Trust.LOCAL
    source = "release" if read.scope == BUILT_IN else "directory"
    known = {
        skill.name: skill
        for skill in Skill.objects.filter(scope=read.scope, is_deleted=False)
        .select_related("current")
        .defer("current__content", "current__head", "current__findings")
    }
    for package in read.packages:
        skill = known.pop(package.head.name, None)
        current = skill.current if skill else None
        if current is not None and current.content_hash == package.content_hash:
            continue
        store_package(read.scope, package, VersionDetails(source), trust=trust)
    for skill in known.values():
        delete_skill(skill, VersionDetails(source, reason="It is not in the directory any more."))


def _read(scope: str, directory: Path) -> SourceRead:
    try:
        signature = _signature(directory)
    except OSError as error:
        problem = Problem(
            Severity.ERROR,
            "unreadable",
            f"The directory of skills {directory} cannot be read ({error.strerror}): name one "
            "that is there, or leave it out.",
        )
        return SourceRead(scope, (), {"": [problem]})
    with _lock:
        held = _remembered.get(scope)
    if held is not None and held[0] == signature:
        return held[1]
    packages, problems = read_directory(directory)
    read = SourceRead(scope, tuple(packages), problems)
    with _lock:
        while len(_remembered) >= _MAX_REMEMBERED:
            _remembered.pop(next(iter(_remembered)))
        _remembered[scope] = (signature, read)
    return read


def _signature(directory: Path) -> _Signature:
    found: list[tuple[str, int, int, int, int]] = []
    left = [str(directory)]
    limit = skill_settings().DIRECTORY_ENTRIES
    if not stat.S_ISDIR(os.stat(directory).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "it is no directory", str(directory))
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                found.append(
                    (
                        entry.path,
                        status.st_mtime_ns,
                        status.st_ctime_ns,
                        status.st_size,
                        status.st_ino,
                    )
                )
                if stat.S_ISDIR(status.st_mode):
                    left.append(entry.path)
        if len(found) > limit:
            raise OSError(errno.E2BIG, f"it holds more than {limit:,} files", str(directory))
    return tuple(sorted(found))
