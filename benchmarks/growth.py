"""The cost of a run, a worker's queries and the pages, as the database grows by 10 and by 100."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from benchmarks.options import Options
from benchmarks.overhead import VEL, VEL_POSTGRES
from benchmarks.processes import (
    HARNESSES,
    Harness,
    fake_model,
    temporary_directory,
    vel_environment,
)
from benchmarks.report import Report
from benchmarks.server import script
from tests.support.postgres import binaries, postgres_server

SMALL = (100, 1_000, 10_000)
FULL = (1_000, 10_000, 100_000)
"""The number of runs in the database before each measurement."""
TURNS = 3
TIMES = 15
SECONDS = 3600


def measure(options: Options) -> Report:
    """Fill the database and measure, once for each size."""
    levels = FULL if options.full else SMALL
    found: dict[str, dict[int, Any]] = {}
    with ExitStack() as stack:
        url = stack.enter_context(fake_model())
        databases = {VEL: ""}
        if binaries() is not None:
            databases[VEL_POSTGRES] = stack.enter_context(postgres_server())
        for name, database_url in databases.items():
            found[name] = _levels(url, database_url, levels)
    rows = []
    for name, by_level in found.items():
        first, last = by_level[levels[0]], by_level[levels[-1]]
        for what, begun in first["costs"].items():
            cpu = [by_level[level]["costs"][what]["cpu_ms"] for level in levels]
            ended = last["costs"][what]
            rows.append(
                [
                    f"{name}: {what}",
                    *(f"{value:.1f} ms" for value in cpu),
                    f"{cpu[-1] / cpu[0]:.2f}",
                    f"{begun['statements']:.0f} → {ended['statements']:.0f}",
                ]
            )
    sizes = ", ".join(
        f"{name} {by[levels[-1]]['rows']:,} rows, {by[levels[-1]]['bytes'] / 1e6:.0f} MB"
        for name, by in found.items()
    )
    return Report(
        "Growth: CPU by number of existing runs",
        ["what", *(f"{level:,}" for level in levels), "last / first", "statements"],
        rows,
        [
            f"Medians of {TIMES}, of Vel's own process. A run has {TURNS} tool turns. All rows are "
            f"one person's, a run a minute back from now. At the end: {sizes}."
        ],
        {name: {str(level): part for level, part in by.items()} for name, by in found.items()},
    )


def _levels(url: str, database_url: str, levels: tuple[int, ...]) -> dict[int, Any]:
    with temporary_directory() as directory:
        environment = vel_environment(directory, url, database_url)
        site = Harness([sys.executable, str(HARNESSES / "vel_growth.py")], environment)
        try:
            found = {}
            message = script("read_todos", TURNS)
            for level in levels:
                size = site.call("fill", runs=level, message=message, timeout=SECONDS)
                costs = site.call("measure", message=message, times=TIMES, timeout=SECONDS)
                found[level] = {**size, "costs": costs}
            return found
        finally:
            site.close()
