"""Periodic work of workers, which features list in their `jobs.JOBS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class Job:
    """Work that every worker looks for, each `every` seconds.

    `run` is called on a thread with a database connection and outside a transaction. It does one
    piece of work and returns whether there may be more; at most `parts` pieces are done in one
    look. Several workers call it at the same time, so it must lock the rows that it changes. Work
    that only one process may do, now and then, begins with
    `agents.services.background_jobs.take_background_job(name, seconds)`. After an error it is tried
    again, with longer and longer pauses up to five minutes.

    `name` says what it looks for, for the log: "schedules".
    """

    name: str
    run: Callable[[], object]
    every: float = 1.0
    parts: int = 1_000_000
    workers_only: bool = True
    """Whether a process that drives the run of one command leaves it to workers."""


def feature_jobs() -> list[Job]:
    """Return the jobs of the installed features."""
    return [job for _, job in collect("jobs", "JOBS")]
