"""Errors of the library of skills. `agents` converts them to its own service errors."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.library.problems import Problem


class SkillRefused(Exception):
    """The base class. Users may see the message; `code` is a stable word for programs."""

    code = "refused"


class InvalidSkill(SkillRefused):
    """It is not a valid skill. `problems` are all its problems."""

    code = "invalid"

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class SkillChanged(SkillRefused):
    """The skill is not at the version that the change builds on."""

    code = "stale"
