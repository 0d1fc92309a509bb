"""The problems of a package, as a list: all together, each with its fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sandbox.errors import AgentError


class Severity(StrEnum):
    """`error`: the package is refused. `warning`: it is accepted, and repaired on export."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `path` is relative to the package, "" for the package itself.

    `code` is a stable word for programs; users may see `message`, which includes the fix.
    """

    severity: Severity
    code: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def error(code: str, message: str, path: str = "") -> Problem:
    """Return a reason to refuse the package."""
    return Problem(Severity.ERROR, code, message, path)


def warning(code: str, message: str, path: str = "") -> Problem:
    """Return a problem that is accepted, and repaired on export."""
    return Problem(Severity.WARNING, code, message, path)


TOO_LONG = "too_long"
"""A field is longer than the specification allows. An import shortens it."""


def strictly(problems: Sequence[Problem]) -> list[Problem]:
    """Return `problems`, with errors instead of warnings if only an import repairs them."""
    return [
        replace(problem, severity=Severity.ERROR) if problem.code == TOO_LONG else problem
        for problem in problems
    ]


class SkillRefused(AgentError):
    """The base class. Users may see the message; `code` is a stable word for programs."""

    code = "refused"


class InvalidSkill(SkillRefused):
    """It is not a valid skill. `problems` are all its problems.

    >>> try:
    ...     load_skill("./nothing")
    ... except InvalidSkill as error:
    ...     print(error.code)
    invalid
    """

    code = "invalid"

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class SkillChanged(SkillRefused):
    """The skill is not at the version that the change builds on."""

    code = "stale"
