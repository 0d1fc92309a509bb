"""Work of features in workers.

Features list periodic work in their `jobs.JOBS`, and parts of a worker with threads of their own in
their `jobs.PARTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class Job:
    """Periodic work of every worker, each `every` seconds.

    `run` is called on a thread with a database connection and outside a transaction. It does one
    piece of work and returns whether there may be more; at most `parts` pieces are done in one
    pass. Several workers call it at the same time, so it must lock the rows that it changes. Work
    that only one process may do starts with
    `agents.services.background_jobs.take_background_job(name, seconds)`. After an error it is tried
    again, with increasing pauses up to five minutes.

    `name` is the kind of work for the log: "schedules".
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


class WorkerPart:
    """The base class of parts with threads of their own: each worker has one of each class.

    Use it for work that blocks, for example for calls of other servers: a `Job` would block the
    worker's runs.
    """

    finds: ClassVar[str]
    """The kind of work for the log: "notifications"."""

    def look(self) -> None:
        """Start due work. Reads rows and does not block.

        Called each second, in a transaction, except in the process of one command.
        """

    def close(self) -> None:
        """Start no more work. Returns immediately."""

    def join(self) -> None:
        """Wait for running work, after `close`: some seconds at most."""


def feature_parts() -> list[WorkerPart]:
    """Create the parts of the installed features for one worker."""
    return [part() for _, part in collect("jobs", "PARTS")]
