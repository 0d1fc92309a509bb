"""What is wrong with a package, as a list: all at once, each with what to change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """`error`: the package is refused. `warning`: it is taken, and mended on export."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to change. `path` is relative to the package, "" for the package itself.

    `code` is a stable word for programs; `message` is fit to be shown and says what to do.
    """

    severity: Severity
    code: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def error(code: str, message: str, path: str = "") -> Problem:
    """A reason to refuse the package."""
    return Problem(Severity.ERROR, code, message, path)


def warning(code: str, message: str, path: str = "") -> Problem:
    """Something that is taken, and mended on export."""
    return Problem(Severity.WARNING, code, message, path)
