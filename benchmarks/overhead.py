"""The CPU time of each harness for a model call, and the growth of its database."""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.options import Options
from benchmarks.peers.environment import PeerMissing, peer_python, peer_version
from benchmarks.processes import (
    HARNESSES,
    Harness,
    HarnessFailed,
    clean_environment,
    fake_model,
    temporary_directory,
    vel_environment,
)
from benchmarks.report import Report
from benchmarks.server import script
from tests.support.postgres import binaries, postgres_server

BARE, VEL, VEL_POSTGRES = "bare SDK loop", "Vel", "Vel on PostgreSQL"
DEEPAGENTS, PYDANTIC_AI = "deepagents", "pydantic-ai"
WARM_UP_CALLS = 5
PACE_MS = 2
"""The pause between two events of a paced stream, as from a real model."""
RUN_SECONDS = 300


@dataclass
class Contender:
    """A running harness, and its measurements by scenario."""

    name: str
    harness: Harness
    tool: str
    samples: dict[Scenario, list[dict[str, Any]]] = field(default_factory=dict)

    def run(self, scenario: Scenario) -> None:
        turns, pace = scenario
        found = self.harness.call(
            "run", message=script(self.tool, turns, pace_ms=pace), timeout=RUN_SECONDS
        )
        if found["calls"] != turns + 1:
            raise HarnessFailed(f"{self.name} made {found['calls']} model calls, not {turns + 1}")
        self.samples.setdefault(scenario, []).append(found)

    def cpu_ms(self, scenario: Scenario) -> float:
        """Return the median CPU milliseconds of a model call."""
        return statistics.median(
            sample["cpu_s"] * 1000 / sample["calls"] for sample in self.samples[scenario]
        )

    def bytes_per_turn(self, scenario: Scenario) -> float | None:
        samples = self.samples[scenario]
        if "db_bytes" not in samples[0]:
            return None
        return statistics.median(sample["db_bytes"] / scenario[0] for sample in samples)


Scenario = tuple[int, int]
"""The tool turns of a run, and the milliseconds between the events of the stream."""


def measure(options: Options) -> Report:
    """Run the contenders in turn, round after round, until the time limit."""
    notes: list[str] = []
    scenarios: list[Scenario] = [(turns, 0) for turns in options.turns]
    scenarios.append((options.turns[0], PACE_MS))
    with ExitStack() as stack:
        url = stack.enter_context(fake_model())
        contenders = _start(options, stack, url, notes)
        for contender in contenders:
            contender.run((WARM_UP_CALLS, 0))
            contender.samples.clear()
        deadline = time.monotonic() + options.seconds
        rounds = 0
        longest = 0.0
        while rounds < options.rounds and time.monotonic() + longest < deadline:
            began = time.monotonic()
            for scenario in scenarios:
                for contender in contenders:
                    contender.run(scenario)
            longest = max(longest, time.monotonic() - began)
            rounds += 1
    notes.insert(
        0, f"Rounds: {rounds}; shown are medians. Each round runs all scenarios everywhere."
    )
    return _report(contenders, scenarios, notes)


def _start(options: Options, stack: ExitStack, url: str, notes: list[str]) -> list[Contender]:
    contenders: list[Contender] = []

    def add(name: str, tool: str, python: str, file: str, *arguments: str, **values: str) -> None:
        environment = values or clean_environment()
        harness = Harness([python, str(HARNESSES / file), *arguments], environment)
        stack.callback(harness.close)
        contenders.append(Contender(name, harness, tool))

    def directory() -> Path:
        return stack.enter_context(temporary_directory())

    def vel(name: str, database_url: str = "") -> None:
        environment = vel_environment(directory(), url, database_url)
        add(name, "read_todos", sys.executable, "vel_engine.py", **environment)

    add(BARE, "read_notes", sys.executable, "bare_loop.py", "--base-url", url)
    vel(VEL)
    if binaries() is None:
        notes.append("PostgreSQL not measured: its server is not installed.")
    else:
        vel(VEL_POSTGRES, stack.enter_context(postgres_server()))
    if not options.peers:
        notes.append("Peers not measured (--no-peers).")
        return contenders
    arguments = ("--base-url", url, "--directory", str(directory()))
    name = f"{DEEPAGENTS} {peer_version('deepagents')}"
    try:
        python = str(peer_python("deepagents"))
        add(name, "read_notes", python, "deepagents_loop.py", *arguments)
    except (PeerMissing, HarnessFailed) as problem:
        notes.append(f"Peers not measured: {problem}")
    return contenders


def _report(contenders: list[Contender], scenarios: list[Scenario], notes: list[str]) -> Report:
    bare = contenders[0]
    columns = ["CPU a model call"]
    for turns, pace in scenarios:
        columns += [f"{turns} turns{', paced' if pace else ''}", "× bare"]
    columns += [f"bytes a turn at {turns}" for turns, pace in scenarios if not pace]
    rows = []
    figures: dict[str, Any] = {}
    for contender in contenders:
        row = [contender.name]
        found = figures[contender.name] = {}
        for scenario in scenarios:
            milliseconds = contender.cpu_ms(scenario)
            ratio = milliseconds / bare.cpu_ms(scenario)
            row += [f"{milliseconds:.2f} ms", f"{ratio:.2f}"]
            found[_key(scenario)] = {
                "cpu_ms_per_call": milliseconds,
                "ratio_to_bare": ratio,
                "db_bytes_per_turn": contender.bytes_per_turn(scenario),
                "samples": contender.samples[scenario],
            }
        for scenario in scenarios:
            if not scenario[1]:
                size = contender.bytes_per_turn(scenario)
                row.append("–" if size is None else f"{size:,.0f}")
        rows.append(row)
    peers = [contender for contender in contenders if contender.name.startswith(DEEPAGENTS)]
    notes += [_beside(contenders[1], peer, scenarios) for peer in peers]
    notes.append(
        f"Paced: {PACE_MS} ms between the events of a stream; otherwise, replies have no pauses."
    )
    return Report("Overhead", columns, rows, notes, figures)


def _beside(vel: Contender, peer: Contender, scenarios: list[Scenario]) -> str:
    shares = [
        f"1/{peer.cpu_ms(scenario) / vel.cpu_ms(scenario):.1f} at {scenario[0]} turns"
        for scenario in scenarios
        if not scenario[1]
    ]
    return f"{vel.name} takes {', '.join(shares)} of the CPU of {peer.name}."


def _key(scenario: Scenario) -> str:
    return f"{scenario[0]} turns" + (f", {scenario[1]} ms between events" if scenario[1] else "")
