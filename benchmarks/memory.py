"""The memory of `vel up`: the web process, and workers that are idle or busy."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

from benchmarks.options import Options
from benchmarks.processes import (
    HARNESSES,
    Child,
    Harness,
    HarnessFailed,
    Weight,
    descendants,
    fake_model,
    temporary_directory,
    vel_environment,
    weigh,
)
from benchmarks.report import Report
from benchmarks.server import script
from benchmarks.workers import READER, START_SECONDS, TOOL

RUNS_PER_WORKER = 16
TURNS_BEFORE = 50
MODEL_MS = 100
WAIT_SECONDS = 240
FOREVER = 1_000_000
PAGES = 20
MIB = 1024**2


def measure(options: Options) -> Report:
    """Start the processes as an operator does. Measure them idle, then with runs in each worker."""
    with ExitStack() as stack:
        url = stack.enter_context(fake_model())
        directory = stack.enter_context(temporary_directory())
        environment = vel_environment(directory, url)
        site = Harness([sys.executable, str(HARNESSES / "vel_site.py")], environment)
        stack.callback(site.close)
        log = directory / "up.log"
        arguments = ["up", "--port", "0", "--workers", str(options.workers), "--grace", "5"]
        with log.open("w") as output:
            up = Child(
                [sys.executable, "-m", "velproject.cli", *arguments],
                environment,
                stdout=output,
                stderr=output,
            )
        stack.callback(up.close)
        address = address_in(log)
        for _ in range(PAGES):
            urlopen(f"{address}/login/", timeout=START_SECONDS).close()
        # One run for each worker process, so that all of them have started and worked.
        warm_up = [script(TOOL, 3, delay_ms=MODEL_MS)] * (options.workers * 4)
        site.call("run_many", agent=READER, messages=warm_up, seconds=START_SECONDS)
        commands = descendants(up.pid)
        idle = {pid: weigh(pid) for pid in commands}

        long = [script(TOOL, FOREVER, delay_ms=MODEL_MS)] * (RUNS_PER_WORKER * options.workers)
        runs = site.call("start", agent=READER, messages=long)
        limits = {"seconds": WAIT_SECONDS, "timeout": WAIT_SECONDS + 10}
        site.call("wait_for_turns", ids=runs, turns=TURNS_BEFORE, **limits)
        workers = site.call("worker_pids", ids=runs)
        busy = {pid: weigh(pid) for pid in descendants(up.pid)}
        site.call("cancel", ids=runs, **limits)
    web = [pid for pid, command in commands.items() if "velproject.child web" in command]
    others = [pid for pid in commands if pid not in (*web, *workers)]
    groups = {
        f"web, after {PAGES} pages": _mean(idle, web),
        "worker, idle": _mean(idle, workers),
        f"worker, {len(runs) / len(workers):.0f} runs of {TURNS_BEFORE} turns and more": _mean(
            busy, workers
        ),
    }
    sums = {
        f"supervisor and the queue's own, {len(others)} processes": _sum(idle, others),
        f"everything, idle, {len(idle)} processes": _sum(idle, idle),
        f"everything, busy, {len(busy)} processes": _sum(busy, busy),
    }
    rows = [[name, *_cells(weight)] for name, weight in groups.items()]
    rows += [[name, "–", _cells(weight)[1]] for name, weight in sums.items()]
    return Report(
        f"Memory of vel up with {options.workers} workers",
        ["process", "RSS", "PSS"],
        rows,
        ["PSS counts a page that several processes share by each one's part of it, so it adds up."],
        {
            name: {"rss": weight.rss, "pss": weight.pss}
            for name, weight in {**groups, **sums}.items()
        },
    )


def address_in(log: Path) -> str:
    """Return the address that `vel up` prints."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = re.search(r"http://\S+?(?=/ )", log.read_text())
        if found:
            return found[0]
        time.sleep(0.1)
    raise HarnessFailed(f"vel up did not start within {START_SECONDS} s: {log.read_text()[-500:]}")


def _sum(weights: dict[int, Weight], pids: Iterable[int]) -> Weight:
    chosen = [weights[pid] for pid in pids]
    return Weight(sum(weight.rss for weight in chosen), sum(weight.pss for weight in chosen))


def _mean(weights: dict[int, Weight], pids: list[int]) -> Weight:
    total = _sum(weights, pids)
    return Weight(total.rss // len(pids), total.pss // len(pids))


def _cells(weight: Weight) -> list[str]:
    return [f"{weight.rss / MIB:.0f} MiB", f"{weight.pss / MIB:.0f} MiB"]
