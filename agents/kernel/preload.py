"""Modules that workers need, or that some of them need.

A cluster imports them once, before it forks its workers, which share the memory. A feature lists
instances of `Preload` in its `preload.PRELOAD`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preload:
    modules: tuple[str, ...]
    needed: Callable[[], bool] | None = None
    """Whether this installation needs them. It may query the database. None: it does."""
