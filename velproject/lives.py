"""The lives of clusters, and what one tells the next and its supervisor.

Leases name the worker that holds them. When a worker is dead, and not just silent, the next one
ends its leases, so that its runs do not wait for 30 seconds. Only these know that it is dead: the
guard of its cluster, which has waited for its process, and the supervisor of the cluster, for which
the kernel closes a pipe when the last process of a cluster is gone. They know a worker by a name
that no other process has, on any machine and at any time.
"""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

KEPT = 64
"""How many dead workers or clusters are remembered: leases of older ones ended by themselves."""


def new_life() -> str:
    return secrets.token_hex(8)


@dataclass
class Life:
    """One life of a cluster. Its workers are `LIFE-1`, `LIFE-2`, and so on."""

    name: str = field(default_factory=new_life)
    dead: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    """Workers of this cluster, and earlier clusters, that are known to be dead."""
    news_fd: int | None = None
    """The end of the supervisor's pipe that every process of the cluster holds open."""
    workers: int = 0

    def next_worker(self) -> str:
        """A name for a worker that is about to be started."""
        self.workers += 1
        return f"{self.name}-{self.workers}"

    def say_that_it_works(self) -> None:
        """Tell the supervisor that this cluster has done something useful."""
        if self.news_fd is not None:
            try:
                os.write(self.news_fd, b"1")
            except OSError:
                pass  # there is no supervisor any more, or it has been told often enough


def life_under_supervisor(name: str, dead: Collection[str], news_fd: int) -> Life:
    """The life of a process that the supervisor has started with this name and this pipe."""
    os.set_inheritable(news_fd, False)  # the processes that it forks hold it, and no other
    return Life(name, deque(dead, KEPT), news_fd)
