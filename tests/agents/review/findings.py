"""A finding, in the format of a scanner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    start: int
    end: int
    severity: str = "warning"
    description: str = "looks wrong"
