"""What features keep for some time only: rows and files.

`vel prune` deletes old rows, which features list in `retention.OLD_ROWS`. `vel workspaces prune`
deletes files outside of workspaces that are not needed any more: `unused_files.UNUSED_FILES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class OldRows:
    """Rows of one kind. Nothing refers to them."""

    name: str
    """What `vel prune` calls them."""
    days: Callable[[], int]
    """How long they are kept, from the feature's settings. 0: for ever."""
    rows: Callable[[datetime], QuerySet[Any]]
    """The rows from before this time that can be deleted."""


def feature_rows() -> list[OldRows]:
    """Return those of the installed features."""
    return [entry for _, entry in collect("retention", "OLD_ROWS")]


@dataclass(frozen=True, slots=True)
class UnusedFiles:
    """`remove(days, apply)` returns the paths that were not used for so many days."""

    name: str
    """What they are, in the plural."""
    remove: Callable[[int, bool], list[str]]


def unused_files() -> list[UnusedFiles]:
    """Return those of the installed features."""
    return [entry for _, entry in collect("unused_files", "UNUSED_FILES")]
