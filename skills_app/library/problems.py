"""The problems of a package. All are reported together, each with its fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sandbox.errors import AgentError


class Severity(StrEnum):
    """An `error` refuses the package, a `warning` does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a package.

    `path` is relative to the package, "" for the package itself. `code` is a stable word for
    programs. `message` contains the fix and may be shown to users.
    """

    severity: Severity
    code: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def error(code: str, message: str, path: str = "") -> Problem:
    """Return a problem that refuses the package."""
    return Problem(Severity.ERROR, code, message, path)


def warning(code: str, message: str, path: str = "") -> Problem:
    """Return a problem that is accepted.

    An export repairs problems of the head. Others, such as `nested`, stay.
    """
    return Problem(Severity.WARNING, code, message, path)


TOO_LONG = "too_long"
"""The code of a field that is longer than the specification allows. An import shortens it."""

VALUE_CHANGED = frozenset(
    {TOO_LONG, "extra", "metadata", "priority", "requires", "tags", "title", "tools_required"}
    | {"triggers"}
)
"""The codes of warnings that a value of the head is not used as it was written."""


def strictly(problems: Sequence[Problem]) -> list[Problem]:
    """Return `problems`, with too long fields as errors, because only an import shortens fields."""
    return [
        replace(problem, severity=Severity.ERROR) if problem.code == TOO_LONG else problem
        for problem in problems
    ]


class SkillRefused(AgentError):
    """The base class of the exceptions for skills.

    Users may see the message. `code` is a stable word for programs.
    """

    code = "refused"


class InvalidSkill(SkillRefused):
    """The skill is not valid. `problems` has all its problems.

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
    """The skill has changed since the version that the request is based on."""

    code = "stale"
