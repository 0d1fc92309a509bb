"""Findings of `vel doctor`.

Features list checks, functions that return findings, in their `doctor.CHECKS`, and those that need
the database in `doctor.DATABASE_CHECKS`.
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
    """A line of the report. `mend` is the advice, empty if no action is needed."""

    subject: str
    level: Level
    detail: str
    mend: str = ""
