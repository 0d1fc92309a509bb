"""A worker of a site in a separate process: `python -c "…main()"` until its input ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from agents.engine import worker
from agents.engine.process import sweeper
from tests.support.hang import HANG
from tests.support.site import ROOT, Site

_WORKER = "import django; django.setup(); from tests.support.site_worker import main; main()"
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
    process = subprocess.Popen(
        [*site.inside, sys.executable, "-c", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=site.environment,
        cwd=ROOT,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.stdin.close()
        process.wait(timeout=HANG)
        process.stdout.close()
