"""Declare data that stays when a thread is erased.

Most rows of features are deleted with the thread, because they refer to it. If a feature keeps data
for others, it declares this in the list `KEEPERS` of its module `erasure`.

If rows of a model contain texts of a run, but refer to the run with SET_NULL, the model names this
field in the tuple `erased_with`: then the rows are deleted with the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True, order=True)
class Stays:
    """An item that stays after an erasure. `agent` is the slug of the agent that keeps it."""

    agent: str
    name: str


@dataclass(frozen=True, slots=True)
class Keeper:
    """One kind of data that a feature keeps of erased threads."""

    find: Callable[[str], Sequence[Stays]]
    """Return the items that are kept of a thread and its subagents' threads, by the thread's id."""
    sentence: str
    """The sentence before the list on a page, with a colon at its end."""
    line: str
    """The line for the terminal, with `{agent}` and `{name}`."""
    page: str
    """The URL name of the page that shows the item. The URL takes the agent's slug."""


def keepers() -> list[Keeper]:
    """Return the keepers of the installed features."""
    return [keeper for _, keeper in collect("erasure", "KEEPERS")]
