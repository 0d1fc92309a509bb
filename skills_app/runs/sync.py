"""Update of the rows of skills in directories at the start of a run.

Each package is a separate transaction: the first reading of a thousand packages takes seconds, and
other runs of this process write their rows in between.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Any

from agents.models import Run
from agents.spec import AgentSpec
from skills_app.actions.directories import usable_directories
from skills_app.actions.sync import (
    Changes,
    SourceRead,
    changes_of,
    package_of,
    quarantine_problems,
    read_source,
    read_sources,
    remove_gone,
    store_found,
)
from skills_app.library.errors import SkillChanged
from skills_app.library.problems import error
from skills_app.options import SkillOptions

logger = logging.getLogger(__name__)

PASSES = 5
"""How often a directory is read again that others store, or change, at the same moment."""


async def synced_sources(worker: Any, run: Run, spec: AgentSpec) -> list[SourceRead]:
    """Return the contents of the directories of a run's skills, after updating the rows."""
    directories, refused = usable_directories(run)
    built_in = spec.option(SkillOptions).builtin_skills
    reads = await worker.in_thread(partial(read_sources, directories, built_in=built_in))
    found = [await _synced(worker, read) for read in reads]
    found += refused
    for read in found:
        for path, problems in read.problems.items():
            logger.warning(
                "skills left out: %s %s: %s",
                read.scope,
                path,
                " ".join(str(problem) for problem in problems)[:1000],
                extra={"run_id": run.pk},
            )
    return found


async def _synced(worker: Any, read: SourceRead) -> SourceRead:
    for _ in range(PASSES):
        changes: Changes = await worker.database.run(changes_of, read)
        if not changes:
            if not changes.quarantined:
                return read
            return replace(read, problems={**read.problems, **quarantine_problems(changes)})
        if not await _store(worker, read.scope, changes):
            read = await worker.in_thread(read_source, read.scope)
    changes = await worker.database.run(changes_of, read)
    late = {
        found.path or ".": [error("changing", "It changes all the time: the next run reads it.")]
        for found in changes.packages
    }
    kept = tuple(found for found in read.packages if found not in changes.packages)
    problems = {**read.problems, **late, **quarantine_problems(changes)}
    return SourceRead(read.scope, kept, problems)


async def _store(worker: Any, scope: str, changes: Changes) -> bool:
    """Store changes. Return False if a package has changed since it was read: read again."""
    as_read = True
    for found in changes.packages:
        package = await worker.in_thread(package_of, scope, found)
        if package is None:
            as_read = False
            continue
        try:
            await worker.database.run(store_found, scope, package)
        except SkillChanged:
            continue  # another process stored it at this moment: the next reading shows it
    if changes.gone:
        try:
            await worker.database.run(remove_gone, scope, changes.gone)
        except SkillChanged:
            pass  # see above
    return as_read
