"""What the library of skills refuses. `agents` turns these into its own service errors."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.library.problems import Problem


class SkillRefused(Exception):
    """Base. The message is fit to be shown; `code` is a stable word for programs."""

    code = "refused"


class InvalidSkill(SkillRefused):
    """It is no skill that can be taken. `problems` say all that must change."""

    code = "invalid"

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class SkillChanged(SkillRefused):
    """The skill is not at the version that the change builds on."""

    code = "stale"
