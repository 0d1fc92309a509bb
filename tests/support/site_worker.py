"""A worker of a site in a separate process, until its input ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from agents.engine import worker
from agents.engine.process import sweeper
from tests.support.forked_site import Talking
from tests.support.hang import HANG
from tests.support.site import Site

LOOK_SECONDS = 0.05
"""The interval in which it polls for queued runs. It gets no tasks."""


def main() -> None:
    sweeper.QUEUE_SWEEP_SECONDS = LOOK_SECONDS
    driving = worker.Worker()
    driving.start()
    print("ready", flush=True)
    sys.stdin.read()
    driving.stop(grace=0)


@contextmanager
def working(site: Site) -> Iterator[None]:
    """Drive the runs of `site` during the block."""
    process = Talking("worker", site.environment, namespaces_of=site.namespaces_of)
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.close(HANG)
