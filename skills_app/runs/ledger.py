"""Detection of skill files that a call has read or run, as far as its input shows it."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from agents.middleware.run_parts import FinishedCall
from skills_app.actions.use import note_files
from skills_app.library.package import SKILL_FILE
from skills_app.library.pinned import PinnedSkill

_PATH = re.compile(
    r"(?:^|[\s'\"`;|&<>()=,:\[{])(?:/sandbox)?/skills/([^\s'\"`;|&<>(){}\[\],\x00-\x1f\x7f]+)"
)
_TOOLS = frozenset({"read_file", "execute", "execute_python", "execute_in_sandbox"})
_MAX_PATHS = 20
MAX_PATH = 500


Found = Sequence[tuple[PinnedSkill, str]]


def files_of(skills: dict[str, PinnedSkill], call: FinishedCall) -> Found:
    """Return the files of the run's skills that the call has read or run, each with its skill."""
    if call.is_error or call.tool not in _TOOLS or not skills:
        return ()
    return list(dict.fromkeys(_files(skills, call.raw_input)))


def note_of(found: Found, call: FinishedCall) -> tuple[Callable[[], None], Sequence[PinnedSkill]]:
    """Return the function that records the files in the call's commit, and the activated skills."""
    opened = [skill for skill, path in found if path == SKILL_FILE]
    activates = opened if "load_skill" not in call.tools else []
    return (
        partial(
            note_files, call.run_id, call.thread_id, call.call_id, found[:_MAX_PATHS], activates
        ),
        activates,
    )


def _files(skills: dict[str, PinnedSkill], raw_input: str) -> Iterator[tuple[PinnedSkill, str]]:
    """Yield each (skill, path in it) that the input names, in time linear in the input."""
    for value in json.loads(raw_input).values():
        if not isinstance(value, str):
            continue
        for found in _PATH.findall(value):
            name, _, path = posixpath.normpath(found).partition("/")
            path = path.rstrip(".:")
            if name in skills and path and path.isprintable() and len(path) <= MAX_PATH:
                yield skills[name], path
