"""What stays when a thread is erased.

Most rows of features go with the thread, because they refer to it. If a feature keeps something for
others, it names this in the list `KEEPERS` of its module `erasure`.

A model whose rows hold what was said in a run, but refer to it with SET_NULL, names this field in
`erased_with`, a tuple: the rows are deleted with the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True, order=True)
class Stays:
    """One thing that stays. `agent` is the slug of the agent that keeps it."""

    agent: str
    name: str


@dataclass(frozen=True, slots=True)
class Keeper:
    """What a feature keeps of threads."""

    find: Callable[[str], Sequence[Stays]]
    """Returns what stays of a thread and of its subagents' threads, by the id of the thread."""
    sentence: str
    """Introduces the list on a page, and ends with a colon."""
    line: str
    """One line of the terminal, with `{agent}` and `{name}`."""
    page: str
    """The name of the URL of the page that shows it, with the agent's slug."""


def keepers() -> list[Keeper]:
    """Return those of the installed features."""
    return [keeper for _, keeper in collect("erasure", "KEEPERS")]
