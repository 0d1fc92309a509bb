"""The check of skills by `vel doctor`. Imported after Django's set-up."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from agents.kernel.findings import Finding, Level
from skills_app.actions.sync import read_sources
from skills_app.library.scopes import describe_scope
from skills_app.settings import SkillSettings

PACKAGES_TOLD = 20


def check_skills() -> Iterator[Finding]:
    """Check that the skills of Vel and of the directories are valid and can be unpacked."""
    store = SkillSettings.now().store_directory
    place = next(there for there in (store, *store.parents) if there.exists())
    try:
        with tempfile.TemporaryDirectory(dir=place):
            pass
    except OSError as error:
        yield Finding(
            "skills",
            Level.BROKEN,
            f"they cannot be unpacked for sandboxes at {store}: {error.strerror}",
            "Make it writable for this account, or set STORE in VEL_SKILLS.",
        )
    left_out = []
    for read in read_sources(SkillSettings.now().DIRECTORIES, built_in=True):
        where = describe_scope(read.scope)
        if "" not in read.problems:
            yield Finding("skills", Level.OK, f"{where}: {len(read.packages)}")
        left_out += [
            (f"{where}/{path}".rstrip("/"), " ".join(map(str, problems)))
            for path, problems in read.problems.items()
        ]
    for path, said in left_out[:PACKAGES_TOLD]:
        yield Finding(
            "skills", Level.NOTE, f"{path}: {said[:500]}", "`vel skills validate` says all of it."
        )
    if len(left_out) > PACKAGES_TOLD:
        yield Finding("skills", Level.NOTE, f"{len(left_out) - PACKAGES_TOLD} more are left out")


CHECKS = [check_skills]
