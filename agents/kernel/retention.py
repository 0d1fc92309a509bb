"""Data of features with a limited lifetime: rows and files.

`vel prune` deletes old rows, which features list in `retention.OLD_ROWS`. `vel workspaces prune`
deletes unused files outside of workspaces, which features list in `unused_files.UNUSED_FILES`.
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
    """Rows of one kind that expire. No other rows refer to them."""

    name: str
    """The name of these rows in `vel prune`."""
    days: Callable[[], int]
    """Returns the retention period in days, from the feature's settings. 0: forever."""
    rows: Callable[[datetime], QuerySet[Any]]
    """Returns the rows that are older than this time and can be deleted."""


def feature_rows() -> list[OldRows]:
    """Return the kinds of rows that `vel prune` deletes: `OLD_ROWS` of the installed features."""
    return [entry for _, entry in collect("retention", "OLD_ROWS")]


@dataclass(frozen=True, slots=True)
class UnusedFiles:
    """Files of one kind.

    `remove(days, apply)` returns the paths that were unused for `days` days, and removes them if
    `apply` is true.
    """

    name: str
    """The name of these files for people, in the plural."""
    remove: Callable[[int, bool], list[str]]


def unused_files() -> list[UnusedFiles]:
    """Return the kinds of files of the installed features."""
    return [entry for _, entry in collect("unused_files", "UNUSED_FILES")]
