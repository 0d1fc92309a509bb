"""Which directories of the host hold skills of a run, and which may not.

What lies in them is trusted as `local`: whoever can write there teaches the agent. So it is no
place that the agent's own commands and file tools write to.
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
"""That one caller names for a thread."""
MAX_PATH = 1000


def check_skill_directories(directories: Sequence[str], workspace_path: str) -> None:
    """Raise `InvalidRequest` for paths that may not be a thread's directories of skills.

    That they are there is not looked at: it is told when a run begins, by the host that has it.
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
    """(directories of skills that this run has, those that are refused, each with the reason).

    Of the settings first, then of the caller. Looked at again for each run: a link may lead
    elsewhere now.
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
    """The place that agents write to and that `path` has a part of, or is a part of."""
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
