"""A full queue: many runs at the same time, with watchers and approvers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.memory import MIB, address_in
from benchmarks.options import Options
from benchmarks.overhead import BARE, DEEPAGENTS, PYDANTIC_AI, VEL, VEL_POSTGRES
from benchmarks.peers.environment import PeerMissing, peer_python, peer_version
from benchmarks.processes import (
    HARNESSES,
    Child,
    Harness,
    HarnessFailed,
    clean_environment,
    descendants,
    fake_model,
    temporary_directory,
    vel_environment,
    weigh,
)
from benchmarks.report import Report
from benchmarks.server import script
from benchmarks.workers import ASKER, READER, TOOL
from tests.support.postgres import binaries, postgres_server

TURNS = 5
ASKS_EVERY = 5
"""One run in this many requires an approval."""
MODEL_MS = 300
PACE_MS = 20
READERS = 8
LOOK_SECONDS = 0.5
RUN_SECONDS = 3600


@dataclass(frozen=True)
class Scale:
    """The size of the benchmark."""

    runs: int
    at_once: int
    watchers: int
    approvers: int


SMALL = Scale(runs=60, at_once=20, watchers=10, approvers=4)
"""Takes two minutes on two cores."""
FULL = Scale(runs=1_000, at_once=200, watchers=100, approvers=20)


def measure(options: Options) -> Report:
    """Measure each harness once, one after the other, with the same work."""
    scale = FULL if options.full else SMALL
    notes: list[str] = []
    found: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        url = stack.enter_context(fake_model())
        found[VEL] = _told(VEL, _vel(options, scale, url))
        if binaries() is not None:
            with postgres_server() as database_url:
                found[VEL_POSTGRES] = _told(VEL_POSTGRES, _vel(options, scale, url, database_url))
        found[BARE] = _told(BARE, _loop(sys.executable, "bare_loop.py", url, scale))
        for name, module, place in (
            (DEEPAGENTS, "deepagents", True),
            (PYDANTIC_AI, "pydantic-ai-slim", False),
        ):
            if not options.peers:
                continue
            try:
                python = str(peer_python(module))
            except PeerMissing as missing:
                notes.append(f"Not measured: {missing}")
                continue
            file = f"{name.replace('-', '_')}_loop.py"
            title = f"{name} {peer_version(module)}"
            found[title] = _told(title, _loop(python, file, url, scale, in_directory=place))
    notes.insert(
        0,
        f"{scale.runs} runs of {TURNS} tool turns, {scale.at_once} at the same time; the model "
        f"waits {MODEL_MS} ms and {PACE_MS} ms between the events of a reply. Vel: vel up with "
        f"{options.workers} workers, {scale.watchers} watchers, {scale.approvers} approvers by "
        f"REST, every {ASKS_EVERY}th run asks once. The others: the same conversations, in one "
        "process, without a queue, watchers or approvals; only deepagents stores anything.",
    )
    return Report(
        f"Load: {scale.runs} runs queued, {scale.at_once} driven at the same time",
        ["harness", "wall", "runs a minute", "queue p50 / p95", "decision to call p50 / p95",
         "stream p50 / p95", "memory at its peak", "database a run", "failed"],
        [[name, *_cells(figures, scale)] for name, figures in found.items()],
        notes,
        found,
    )  # fmt: skip


def _told(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    """Print the figures now, in case a later harness fails."""
    print(f"{name}: {json.dumps(figures)}", file=sys.stderr, flush=True)
    return figures


def _vel(options: Options, scale: Scale, url: str, database_url: str = "") -> dict[str, Any]:
    with ExitStack() as stack:
        directory = stack.enter_context(temporary_directory())
        environment = {
            **vel_environment(directory, url, database_url),
            "VEL_RUNS_PER_WORKER": str(-(-scale.at_once // options.workers)),
            # The crowd uses one address and few accounts, so rate limits would stop it.
            "VEL_API_USER_REQUESTS": "0",
            "VEL_API_TOKEN_REQUESTS": "0",
        }
        site = Harness([sys.executable, str(HARNESSES / "vel_load.py")], environment)
        stack.callback(site.close)
        people = site.call("people", readers=READERS, approvers=scale.approvers)
        log = directory / "up.log"
        command = [sys.executable, "-m", "velproject.cli", "up", "--port", "0", "--grace", "5"]
        with log.open("w") as output:
            up = Child(
                [*command, "--workers", str(options.workers)],
                environment,
                stdout=output,
                stderr=output,
            )
        stack.callback(up.close)
        port = urlsplit(address_in(log)).port
        warm_up = [script(TOOL, 2, delay_ms=50)] * (options.workers * 4)
        site.call("run_many", agent=READER, messages=warm_up, seconds=60)
        crowd = Harness([sys.executable, str(HARNESSES / "vel_crowd.py")], clean_environment())
        stack.callback(crowd.close)
        before = site.call("size")
        runs = [_work(number) for number in range(scale.runs)]
        began = time.monotonic()
        ids = site.call("queue", runs=runs, timeout=RUN_SECONDS)
        queued = time.monotonic() - began
        asking = sum(agent == ASKER for agent, _ in runs)
        crowd.call(
            "begin",
            port=port,
            readers=people["readers"],
            approvers=people["approvers"],
            watchers=scale.watchers,
            runs=ids,
            decisions=asking,
        )
        peak = _wait(site, up.pid, ids)
        met = crowd.call("end", timeout=120)
        figures = site.call("figures", ids=ids)
        grown = (site.call("size") - before) / scale.runs
        logged = [line for line in log.read_text().splitlines() if " ERROR " in line]
    return {
        **figures, **met, "queueing_s": queued, "memory": peak, "db_bytes": grown,
        "logged_errors": len(logged), "first_errors": logged[:3],
    }  # fmt: skip


def _work(number: int) -> tuple[str, str]:
    if number % ASKS_EVERY == ASKS_EVERY - 1:
        return ASKER, script(TOOL, 1, delay_ms=MODEL_MS, pace_ms=PACE_MS)
    return READER, script(TOOL, TURNS, delay_ms=MODEL_MS, pace_ms=PACE_MS)


def _wait(site: Harness, pid: int, ids: list[str]) -> int:
    """Wait until all runs have ended. Return the peak memory of `vel up` in bytes."""
    peak = 0
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        peak = max(peak, _memory(pid))
        still_open = site.call("open", ids=ids[:1])
        if not still_open:
            return peak
        time.sleep(LOOK_SECONDS)
    raise HarnessFailed(f"after {RUN_SECONDS} s these runs have not ended: {still_open}")


def _memory(pid: int) -> int:
    total = 0
    for process in descendants(pid):
        try:
            total += weigh(process).pss
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended
    return total


def _loop(
    python: str, file: str, url: str, scale: Scale, *, in_directory: bool = False
) -> dict[str, Any]:
    with ExitStack() as stack:
        command = [python, str(HARNESSES / file), "--base-url", url]
        if in_directory:
            command += ["--directory", str(stack.enter_context(temporary_directory()))]
        harness = Harness(command, clean_environment())
        stack.callback(harness.close)
        harness.call("run_many", messages=[script("read_notes", 1)] * 3)
        messages = [
            script(
                "read_notes", TURNS if agent == READER else 1, delay_ms=MODEL_MS, pace_ms=PACE_MS
            )
            for agent, _ in map(_work, range(scale.runs))
        ]
        figures = harness.call(
            "run_many", messages=messages, at_once=scale.at_once, timeout=RUN_SECONDS
        )
        figures["memory"] = _peak(harness.pid)
    if "db_bytes" in figures:
        figures["db_bytes"] /= scale.runs
    return {**figures, "failed": 0}


def _peak(pid: int) -> int:
    """Return the peak memory, in bytes, of a process without children (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise HarnessFailed("the kernel does not report a process's peak")


def _cells(figures: dict[str, Any], scale: Scale) -> list[str]:
    stream = figures.get("stream", {})

    def pair(source: dict[str, Any], name: str, unit: Callable[[float], str]) -> str:
        if f"{name}p50_s" not in source:
            return "–"
        return f"{unit(source[f'{name}p50_s'])} / {unit(source[f'{name}p95_s'])}"

    return [
        f"{figures['wall_s']:.1f} s",
        f"{scale.runs / figures['wall_s'] * 60:.0f}",
        pair(figures, "queue_", "{:.1f} s".format),
        pair(figures, "pickup_", _ms),
        pair(stream, "", _ms),
        f"{figures['memory'] / MIB:.0f} MiB",
        f"{figures['db_bytes'] / 1000:.1f} kB" if "db_bytes" in figures else "–",
        str(figures["failed"]),
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
