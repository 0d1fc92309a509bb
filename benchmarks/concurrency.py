"""Many runs at the same time: Vel's worker processes compared with the bare loop and deepagents."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from benchmarks.options import Options
from benchmarks.overhead import BARE, DEEPAGENTS, VEL, VEL_POSTGRES
from benchmarks.peers.environment import PeerMissing, peer_python, peer_version
from benchmarks.processes import (
    HARNESSES,
    Harness,
    HarnessFailed,
    clean_environment,
    cpu_seconds,
    fake_model,
    temporary_directory,
)
from benchmarks.report import Report
from benchmarks.server import script
from benchmarks.workers import READER, TOOL, WorkingSite, working_site
from tests.support.postgres import binaries, postgres_server

RUN_SECONDS = 600

Contender = Callable[[], dict[str, Any]]


def measure(options: Options) -> Report:
    """Run the contenders in turn, round after round, until the time limit."""
    turns = options.turns[0]
    notes: list[str] = []
    samples: dict[str, list[dict[str, Any]]] = {}
    with ExitStack() as stack:
        url = stack.enter_context(fake_model())
        contenders = _start(options, stack, url, notes)
        deadline = time.monotonic() + options.seconds
        rounds = 0
        longest = 0.0
        while rounds < options.rounds and time.monotonic() + longest < deadline:
            began = time.monotonic()
            for name, run in contenders.items():
                found = run()
                if found["calls"] != options.runs * (turns + 1):
                    raise HarnessFailed(f"{name} made {found['calls']} model calls")
                samples.setdefault(name, []).append(found)
            longest = max(longest, time.monotonic() - began)
            rounds += 1
    notes.insert(0, f"Rounds: {rounds}; shown are medians. The model waits {options.model_ms} ms.")
    walls = {
        name: statistics.median(sample["wall_s"] for sample in found)
        for name, found in samples.items()
    }
    rows = [
        [
            name,
            f"{walls[name]:.1f} s",
            f"{walls[name] / walls[BARE]:.2f}",
            f"{statistics.median(sample['cpu_s'] for sample in samples[name]):.1f} s",
        ]
        for name in samples
    ]
    title = f"Concurrency: {options.runs} runs of {turns} turns at the same time"
    figures = {
        name: {"wall_s": walls[name], "ratio_to_bare": walls[name] / walls[BARE], "samples": found}
        for name, found in samples.items()
    }
    return Report(title, ["harness", "wall time", "× bare", "CPU"], rows, notes, figures)


def _start(options: Options, stack: ExitStack, url: str, notes: list[str]) -> dict[str, Contender]:
    turns, count = options.turns[0], options.runs

    def messages(tool: str) -> list[str]:
        return [script(tool, turns, delay_ms=options.model_ms)] * count

    def loop(python: str, file: str, *arguments: str) -> Contender:
        command = [python, str(HARNESSES / file), "--base-url", url, *arguments]
        harness = Harness(command, clean_environment())
        stack.callback(harness.close)
        harness.call("run_many", messages=[script("read_notes", 3)] * 10)
        return lambda: harness.call(
            "run_many", messages=messages("read_notes"), timeout=RUN_SECONDS
        )

    def vel(database_url: str = "") -> Contender:
        working = stack.enter_context(working_site(url, options.workers, database_url))
        return lambda: _run_vel(working, messages(TOOL))

    contenders = {BARE: loop(sys.executable, "bare_loop.py")}
    contenders[f"{VEL}, {options.workers} workers"] = vel()
    if binaries() is not None:
        name = f"{VEL_POSTGRES}, {options.workers} workers"
        contenders[name] = vel(stack.enter_context(postgres_server()))
    if options.peers and options.concurrent_peers:
        try:
            python = str(peer_python("deepagents"))
        except PeerMissing as missing:
            notes.append(f"Peers left out: {missing}")
        else:
            place = str(stack.enter_context(temporary_directory()))
            name = f"{DEEPAGENTS} {peer_version('deepagents')}"
            contenders[name] = loop(python, "deepagents_loop.py", "--directory", place)
    notes.append(f"{BARE}: one process. The model's server shares the machine with all of them.")
    return contenders


def _run_vel(working: WorkingSite, messages: list[str]) -> dict[str, Any]:
    processes = working.worker_processes()
    before = cpu_seconds(processes)
    found: dict[str, Any] = working.site.call(
        "run_many", agent=READER, messages=messages, seconds=RUN_SECONDS, timeout=RUN_SECONDS + 30
    )
    return {**found, "cpu_s": cpu_seconds(processes) - before}
