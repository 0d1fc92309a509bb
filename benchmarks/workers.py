"""A Vel site with real worker processes, started by the command of an operator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.processes import (
    HARNESSES,
    Child,
    Harness,
    HarnessFailed,
    descendants,
    temporary_directory,
    vel_environment,
)
from benchmarks.server import script

TOOL = "read_todos"
READER, ASKER = "reader", "asker"
START_SECONDS = 60


class WorkingSite:
    """A running site: `site` gives access to it, `workers` is the cluster."""

    def __init__(self, site: Harness, workers: Child) -> None:
        self.site = site
        self.workers = workers

    def worker_processes(self) -> list[int]:
        """Return all processes of the cluster, including its own administration."""
        return list(descendants(self.workers.pid))


@contextmanager
def working_site(model_url: str, workers: int, database_url: str = "") -> Iterator[WorkingSite]:
    """Start a new site. Yield it when every worker has driven runs to their end."""
    with ExitStack() as stack:
        directory = stack.enter_context(temporary_directory())
        environment = vel_environment(directory, model_url, database_url)
        site = Harness([sys.executable, str(HARNESSES / "vel_site.py")], environment)
        stack.callback(site.close)
        command = [sys.executable, "-m", "velproject.cli", "worker", "--workers", str(workers)]
        cluster = Child(command, environment)
        stack.callback(cluster.close)
        warm_up = [script(TOOL, 3, delay_ms=50)] * (workers * 4)
        limits = {"seconds": START_SECONDS, "timeout": START_SECONDS + 10}
        try:
            site.call("run_many", agent=READER, messages=warm_up, **limits)
        except HarnessFailed as error:
            code = cluster.process.poll()
            raise HarnessFailed(
                f"the workers drove no runs: {error}"
                if code is None
                else f"vel worker ended with exit code {code}; its stderr says why"
            ) from error
        yield WorkingSite(site, cluster)
