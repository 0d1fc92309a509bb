"""Files outside of workspaces that nothing needs any more: `unused_files.UNUSED_FILES` of features.

`vel workspaces prune` removes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class UnusedFiles:
    """`remove(days, apply)` returns the paths that were not used for so many days."""

    name: str
    """What they are, in the plural."""
    remove: Callable[[int, bool], list[str]]


def unused_files() -> list[UnusedFiles]:
    return [entry for _, entry in collect("unused_files", "UNUSED_FILES")]
