"""Which files of skills a call has read or run, as far as its input tells."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from functools import partial

from agents.engine.journal_rows import Call, Outcome
from agents.engine.session import Session
from skills_app.actions.use import note_files
from skills_app.library.package import SKILL_FILE
from skills_app.library.pinned import PinnedSkill

_PATH = re.compile(
    r"(?:^|[\s'\"`;|&<>()=,:\[{])(?:/sandbox)?/skills/([^\s'\"`;|&<>(){}\[\],\x00-\x1f\x7f]+)"
)
_TOOLS = frozenset({"read_file", "execute", "execute_python", "execute_in_sandbox"})
_MAX_PATHS = 20
MAX_PATH = 500


def note_skill_files(session: Session, call: Call, outcome: Outcome) -> None:
    """Let the commit of `outcome` record what the call did with files of the run's skills.

    Where there is no tool to load a skill, reading its SKILL.md makes it active.
    """
    if outcome.is_error or call.tool not in _TOOLS or not session.skills.pinned:
        return
    found = list(dict.fromkeys(_files(session.skills.pinned, call.edited_input or call.input)))
    if not found:
        return
    opened = [skill for skill, path in found if path == SKILL_FILE]
    activates = opened if "load_skill" not in session.toolset.tools else []
    run = session.writer
    note = partial(
        note_files, run.run_id, run.thread_id, call.call_id, found[:_MAX_PATHS], activates
    )
    before = outcome.commit

    def commit() -> None:
        if before is not None:
            before()
        note()
        session.skills.activate(activates)

    outcome.commit = commit


def _files(skills: dict[str, PinnedSkill], raw_input: str) -> Iterator[tuple[PinnedSkill, str]]:
    """Each (skill, path in it) that a value of the input names, in time linear in the input."""
    for value in json.loads(raw_input).values():
        if not isinstance(value, str):
            continue
        for found in _PATH.findall(value):
            name, _, path = posixpath.normpath(found).partition("/")
            path = path.rstrip(".:")
            if name in skills and path and path.isprintable() and len(path) <= MAX_PATH:
                yield skills[name], path
