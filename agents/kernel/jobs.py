"""Work of features in workers: periodic work, which features list in their `jobs.JOBS`, and parts
of a worker with threads of their own, which they list in `jobs.PARTS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

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


class WorkerPart:
    """The base class of what has threads of its own: each worker has one of each class.

    Use it for work that blocks, for example for calls of other servers: a `Job` would keep the
    worker from its runs.
    """

    finds: ClassVar[str]
    """What it looks for, for the log: "notifications"."""

    def look(self) -> None:
        """Begin what is due. Called each second, in a transaction, except in the process of one
        command. Reads rows and does not block."""

    def close(self) -> None:
        """Begin nothing more. Returns at once."""

    def join(self) -> None:
        """Wait for what is under way, after `close`: some seconds at most."""


def feature_parts() -> list[WorkerPart]:
    """Make those of the installed features for one worker."""
    return [part() for _, part in collect("jobs", "PARTS")]
