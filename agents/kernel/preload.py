"""Modules that workers need only for some installations.

A cluster imports them once, before it forks its workers, which share the memory. A feature lists
instances of `Preload` in its `preload.PRELOAD`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preload:
    """`needed` may query the database."""

    modules: tuple[str, ...]
    needed: Callable[[], bool]
