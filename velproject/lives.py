"""Names of clusters and workers, with which a new worker ends the leases of dead ones.

A lease contains the name of its worker. If a worker is dead, the next worker ends the lease, so
that the runs do not wait for 30 seconds. Only two processes know for certain that a worker is dead.
The guard of a cluster has waited for the process. The supervisor holds one end of a pipe, and the
kernel closes the other end when the last process of a cluster has ended. A name is random, so that
it is never used twice, on any machine.
"""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

KEPT = 64
"""How many dead workers or clusters are remembered. The leases of older ones have expired."""


def new_life() -> str:
    return secrets.token_hex(8)


@dataclass
class Life:
    """One start of a cluster, until all its processes end.

    The names of its workers are `LIFE-1`, `LIFE-2`, and so on.
    """

    name: str = field(default_factory=new_life)
    dead: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    """The names of dead workers of this cluster, and of dead clusters."""
    news_fd: int | None = None
    """The writing end of the supervisor's pipe, which every process of the cluster keeps open."""
    workers: int = 0

    def next_worker(self) -> str:
        """Return a new name for the next worker."""
        self.workers += 1
        return f"{self.name}-{self.workers}"

    def say_that_it_works(self) -> None:
        """Report to the supervisor that a process has done useful work."""
        if self.news_fd is not None:
            try:
                os.write(self.news_fd, b"1")
            except OSError:
                pass  # the supervisor has ended, or has not read earlier reports yet


def life_under_supervisor(name: str, dead: Collection[str], news_fd: int) -> Life:
    """Return a life from the arguments with which the supervisor started this process."""
    os.set_inheritable(news_fd, False)  # forked processes keep the pipe open, others do not
    return Life(name, deque(dead, KEPT), news_fd)
