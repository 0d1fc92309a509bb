"""Rules for the directories of the host that may contain the skills of a run.

Their contents are trusted as `local`: everyone who can write there can instruct the agent.
Therefore, the agent's own commands and file tools must not be able to write there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agents.models import Run
from agents.services.errors import InvalidRequest
from agents.settings import DataSettings
from skills_app.actions.sync import SourceRead
from skills_app.library.problems import error
from skills_app.library.scopes import directory_scope
from skills_app.settings import SkillSettings

MAX_DIRECTORIES = 20
"""Directories that one caller may name for a thread."""
MAX_PATH = 1000


def check_skill_directories(directories: Sequence[str], workspace_path: str) -> None:
    """Raise `InvalidRequest` for paths that may not be a thread's directories of skills.

    Does not check that they exist: the host of a run checks that when the run starts.
    """
    if len(directories) > MAX_DIRECTORIES:
        raise InvalidRequest(f"{len(directories)} directories of skills; name {MAX_DIRECTORIES}.")
    for path in directories:
        if not os.path.isabs(path) or len(path) > MAX_PATH or not path.isprintable():
            raise InvalidRequest(
                f"A directory of skills must be an absolute path of at most {MAX_PATH} printable "
                "characters."
            )
        if location := _writable_place(path, workspace_path):
            raise InvalidRequest(_refusal(path, location), code="skills_writable")


def usable_directories(run: Run) -> tuple[list[str], list[SourceRead]]:
    """Return (this run's directories of skills, the refused ones with reasons).

    The directories of the settings come first, then those of the caller. They are checked again for
    each run: a link may have a new target.
    """
    named = dict.fromkeys([*SkillSettings.now().DIRECTORIES, *run.thread.skill_directories])
    usable: list[str] = []
    refused: list[SourceRead] = []
    for path in named:
        if location := _writable_place(path, run.thread.workspace_path):
            problem = error("writable", _refusal(path, location))
            refused.append(SourceRead(directory_scope(path), (), {"": [problem]}))
        else:
            usable.append(path)
    return usable, refused


def _writable_place(path: str, workspace_path: str) -> Path | None:
    """Return the writable place that contains `path` or is inside of it."""
    directory = Path(path).resolve()
    places = [DataSettings.now().workspaces, *([Path(workspace_path)] if workspace_path else [])]
    for location in map(Path.resolve, places):
        if directory.is_relative_to(location) or location.is_relative_to(directory):
            return location
    return None


def _refusal(path: str, location: Path) -> str:
    return (
        f"The directory of skills {path} and {location}, where the agent writes, overlap: it could "
        "change what it is taught. Put the skills elsewhere."
    )
