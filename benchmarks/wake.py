"""The time that a decided run waits for a worker while all workers are busy with long runs."""

from __future__ import annotations

import statistics

from benchmarks.options import Options
from benchmarks.processes import fake_model
from benchmarks.report import Report
from benchmarks.server import script
from benchmarks.workers import ASKER, READER, TOOL, working_site

LONG_RUNS = 24
SLOW_MODEL_MS = 400
DECISIONS = 30
INTERVAL_SECONDS = 0.25
FOREVER = 1_000_000
WAIT_SECONDS = 120


def measure(options: Options) -> Report:
    """Park runs, keep the workers busy, then decide the runs one after the other."""
    with fake_model() as url, working_site(url, options.workers) as working:
        site = working.site
        asking = [script(TOOL, 1)] * DECISIONS
        parked = site.call("start", agent=ASKER, messages=asking)
        site.call("wait_for_status", ids=parked, statuses=["waiting"], seconds=WAIT_SECONDS)
        long = [script(TOOL, FOREVER, delay_ms=SLOW_MODEL_MS)] * LONG_RUNS
        busy = site.call("start", agent=READER, messages=long)
        site.call("wait_for_turns", ids=busy, turns=2, seconds=WAIT_SECONDS)
        busy_workers = len(site.call("worker_pids", ids=busy))
        latencies = sorted(site.call("decide", ids=parked, interval=INTERVAL_SECONDS))
        site.call("wait_for_status", ids=parked, statuses=["completed"], seconds=WAIT_SECONDS)
        site.call("cancel", ids=busy, seconds=WAIT_SECONDS)
    p50 = statistics.median(latencies)
    p95 = statistics.quantiles(latencies, n=20, method="inclusive")[-1]
    row = [str(DECISIONS), *(f"{value * 1000:.0f} ms" for value in (p50, p95, latencies[-1]))]
    return Report(
        "Wake-up after a decision",
        ["decisions", "p50", "p95", "longest"],
        [row],
        [
            f"From the commit of the decision to the commit of `started` of the approved call, "
            f"while {LONG_RUNS} runs with a model of {SLOW_MODEL_MS} ms keep "
            f"{busy_workers} of {options.workers} workers busy."
        ],
        {"p50_s": p50, "p95_s": p95, "busy_workers": busy_workers, "latencies_s": latencies},
    )
