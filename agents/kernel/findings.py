"""The findings of `vel doctor`.

Features list their checks in `doctor.CHECKS`, and those that need the database in
`doctor.DATABASE_CHECKS`. A check is a function that returns findings.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
