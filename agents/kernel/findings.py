"""The findings of `vel doctor`.

Features list their checks in `doctor.CHECKS`, and those that need the database in
`doctor.DATABASE_CHECKS`. A check is a function that returns findings.

With `--support-bundle`, the doctor calls the function in `doctor.BUNDLES`, which writes the
archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from django.core.checks import ERROR, CheckMessage, run_checks


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `mend` is the advice, "" if no action is needed."""

    subject: str
    level: Level
    detail: str
    mend: str = ""


WriteBundle = Callable[[Path, Iterable[Finding], Path | None], None]
"""Writes a new archive from the findings and, if it is not None, from a file with the log."""


def system_checks(wanted: Callable[[CheckMessage], bool], no_problems: str) -> Iterator[Finding]:
    """Run Django's system checks, including those of Vel and of its features.

    Args:
        wanted: Returns whether the report includes this message.
        no_problems: The detail of the only finding if no message is included.
    """
    found = [message for message in run_checks() if wanted(message)]
    for message in found:
        yield Finding(
            "settings",
            Level.BROKEN if message.level >= ERROR else Level.NOTE,
            f"{message.msg} ({message.id})",
            message.hint or "",
        )
    if not found:
        yield Finding("settings", Level.OK, no_problems)
