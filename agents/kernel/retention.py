"""Rows of features that are deleted when they are old, which features list in
their `retention.OLD_ROWS`."""

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
