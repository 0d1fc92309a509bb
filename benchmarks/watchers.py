"""The time until an event reaches all watchers of a run, over sockets and over HTTP."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.options import Options
from benchmarks.processes import cpu_seconds, temporary_directory
from benchmarks.report import Report
from tests.support.site import Site, migrated_site
from tests.support.watching import watch_one_run

WATCHERS = (1, 10, 100)
BATCHES = 100
BATCH_SECONDS = 0.05
"""The interval at which a worker stores the pieces of a reply."""


def measure(options: Options) -> Report:
    """Let another process write events at a worker's pace, and add watchers step by step."""
    with temporary_directory() as directory, _migrated_in(directory):
        site = migrated_site(directory)
        try:
            site.do("make_user", name="olga")
            site.start_server()
            measured = [_measure(site, count) for count in WATCHERS]
        finally:
            site.close()
    rows = [
        [
            str(found["watchers"]),
            *(f"{found[name] * 1000:.0f} ms" for name in ("p50_s", "p95_s", "longest_s")),
            f"{found['cpu_s'] / found['frames'] * 1_000_000:.0f} µs",
            "yes" if found["complete"] else "NO",
        ]
        for found in measured
    ]
    return Report(
        "Watchers of one run",
        ["watchers", "p50", "p95", "longest", "server's CPU a frame", "every event once, in order"],
        rows,
        [
            f"From an event's time, just before its commit, to its arrival: {BATCHES} events, one "
            f"every {BATCH_SECONDS * 1000:.0f} ms or a little more, on SQLite. Every second "
            "watcher has a WebSocket, the others server-sent events; one process reads them all."
        ],
        {str(found["watchers"]): found for found in measured},
    )


@contextmanager
def _migrated_in(directory: Path) -> Iterator[None]:
    """Let `migrated_site` keep its files in `directory`, and not in a data directory of Vel."""
    names = ("VEL_DATA_DIR", "VEL_TEST_SHARED_DIR")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(directory)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _measure(site: Site, count: int) -> dict[str, float]:
    before = cpu_seconds([site.server_pid])
    watchers = watch_one_run(site, count, batches=BATCHES, size=1, pause=BATCH_SECONDS)
    cpu = cpu_seconds([site.server_pid]) - before
    # The first event was there before the watchers connected.
    delays = sorted(delay for watched in watchers for delay in watched.delays[1:])
    whole = list(range(1, BATCHES + 3))
    return {
        "watchers": count,
        "p50_s": statistics.median(delays),
        "p95_s": statistics.quantiles(delays, n=20, method="inclusive")[-1],
        "longest_s": delays[-1],
        "cpu_s": cpu,
        "frames": sum(len(watched.seqs) for watched in watchers),
        "complete": all(watched.seqs == whole for watched in watchers),
    }
