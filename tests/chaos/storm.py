"""Active runs while workers are killed, and the checks afterwards."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from agents.ids import run_marker
from agents.models import ApprovalRequest, Message, Run, RunClock, RunEvent, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict
from agents.services.runs.control import cancel_run
from sandbox.markers import marked_argument
from tests.agents.engine.invariants import CALL_ENDS, ENDS, check_messages, check_run
from tests.agents.transition_guard import guarded_transitions
from tests.chaos.story import ASKS, check_ledger, play, task
from tests.chaos.watching import Watchers
from tests.support.cluster import Cluster, wait_for_exit
from tests.support.hang import HANG
from tests.support.messages_api import MessagesServer
from tests.support.runs import make_agent, make_user, start_run, wait_until

ENDED = ("completed", "failed", "cancelled")


@dataclass
class Storm:
    """One cluster, one model, and their runs."""

    directory: Path
    cluster: Cluster
    server: MessagesServer
    watchers: Watchers
    user: User
    seed: int
    names: dict[str, str] = field(default_factory=dict)
    """The story's name by run ID."""
    kills: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    """The time of each kill, and the fencing tokens of the runs that it interrupted, by run ID."""

    turns: int = 0
    """The number of model replies in all runs at the last check."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    # During the storm --------------------------------------------------------------------------

    def start_runs(self, count: int) -> None:
        for _ in range(count):
            name = f"n{len(self.names)}"
            run = start_run(self.user, task(name))
            self.names[run.id] = name
            self.watchers.follow(run.id)

    def unfinished(self) -> list[str]:
        runs = Run.objects.filter(pk__in=list(self.names)).exclude(status__in=ENDED)
        return list(runs.values_list("pk", flat=True))

    def driven_by(self, pid: int) -> dict[str, int]:
        held = RunClock.objects.filter(lease_holder__contains=f":{pid}:", run__status="running")
        return dict(held.values_list("run_id", "fence"))

    def kill(self, *pids: int) -> None:
        """Kill all of these with SIGKILL at the same time."""
        driven = {run: fence for pid in pids for run, fence in self.driven_by(pid).items()}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.kills.append((time.time(), driven))
        for pid in pids:
            wait_for_exit(pid)
            driven |= self.driven_by(pid)  # also what it claimed in its last moment

    def killed_claims(self) -> set[tuple[str, int]]:
        """Return run and fence of each claim that a kill has interrupted."""
        return {claim for _, driven in self.kills for claim in driven.items()}

    def lost_claims(self) -> set[tuple[str, int]]:
        """Return run and fence of each claim that the kills or a busy machine have interrupted."""
        log = self.cluster.log.read_text()
        lapsed = re.findall(r"lost the lease run_id=(\w+) fence=(\d+)", log)
        return self.killed_claims() | {(run_id, int(fence)) for run_id, fence in lapsed}

    def wait_for_progress(self) -> None:
        """Wait until models have answered since the last time: else no new work could be lost."""

        def answered() -> bool:
            turns = sum(RunClock.objects.values_list("turn", flat=True))
            self.turns, before = max(turns, self.turns), self.turns
            return turns > before

        wait_until(answered, "another answer")

    def pause(self, shortest: float = 0.05, longest: float = 0.8) -> None:
        """Wait for a random time, so that kills hit any phase of the work."""
        time.sleep(self.random.uniform(shortest, longest))

    def wait_for_all(self) -> None:
        before, since = -1, time.monotonic()
        while left := self.unfinished():
            if len(left) != before:
                before, since = len(left), time.monotonic()
            if time.monotonic() - since > HANG:
                rows = Run.objects.filter(pk__in=left).values_list(
                    "id", "status", "wait_reason", "clock__lease_holder", "clock__fence"
                )
                raise AssertionError(f"these runs do not continue: {list(rows)}")
            time.sleep(0.05)

    # Afterwards --------------------------------------------------------------------------------

    def check(self) -> None:
        """Check all invariants, which must hold for any times of the kills."""
        assert self.server.violations == []
        for run_id, name in self.names.items():
            run = Run.objects.select_related("thread").get(pk=run_id)
            assert run.status in ("completed", "cancelled"), (run.error_code, run.error_message)
            check_run(run)
            check_messages(run)
            check_ledger(self.directory / "workspaces", run, name)
            check_history(run)
            check_watched(run, self.watchers.seen(run_id))
        assert leftover_sandboxes(self.names) == []

    def delays(self) -> list[float]:
        """Return the seconds from each kill to the next claim of each run that it interrupted."""
        found: list[float] = []
        for killed_at, fences in self.kills:
            for run_id, fence in fences.items():
                for event in RunEvent.objects.filter(run=run_id, type="run.resumed"):
                    if json.loads(event.data).get("attempt", 0) == fence + 1:
                        found.append(event.created_at.timestamp() - killed_at)
        return sorted(found)

    def summary(self) -> str:
        """Return a summary of the storm for `pytest -s`."""
        calls = ToolCall.objects.filter(run__in=list(self.names))
        said = (
            f"{connection.vendor}: {len(self.names)} runs, {calls.count()} calls, "
            f"{calls.filter(status='interrupted').count()} of them interrupted; "
            f"{len(self.kills)} kills"
        )
        if delays := self.delays():
            middle, longest = delays[len(delays) // 2], delays[-1]
            said += (
                f", {len(delays)} times a run was lost by them and went on after "
                f"{middle:.1f} s (median), {longest:.1f} s (longest)"
            )
        return said


def check_history(run: Run) -> None:
    """Check that each call of each reply is in the journal once and has ended."""
    for message in Message.objects.filter(run=run, role="assistant"):
        asked = [block["id"] for block in message.blocks if block["type"] == "tool_use"]
        calls = ToolCall.objects.filter(run=run, turn=message.turn).order_by("position")
        assert [call.call_id for call in calls] == asked
    for call in ToolCall.objects.filter(run=run):
        assert call.finished_at is not None
        assert call.result or call.status == "cancelled"


def check_watched(run: Run, seen: list[dict[str, Any]]) -> None:
    """Check that a watcher saw every event once and in order, and one end of each item."""
    clock = RunClock.objects.get(run=run)
    assert [event["seq"] for event in seen] == list(range(1, clock.seq + 1))
    ends: Counter[tuple[str, str]] = Counter()
    shown: dict[str, str] = defaultdict(str)
    for event in seen:
        data = event["data"]
        if event["type"] in CALL_ENDS:
            ends["call", data["call_id"]] += 1
        elif event["type"] in ENDS:
            ends["run", run.id] += 1
        elif event["type"] == "step.completed":
            ends["step", data["step"]] += 1
        elif event["type"] == "step.reset":
            shown.clear()
        elif event["type"] == "text.delta":
            shown[data["part_id"]] += data["text"]
        elif event["type"] == "text.completed":
            ends["part", data["part_id"]] += 1
            assert data["text"].startswith(shown.pop(data["part_id"], ""))
    assert set(ends.values()) <= {1}, [thing for thing, count in ends.items() if count > 1]


def leftover_sandboxes(run_ids: Any) -> list[str]:
    """Return the command lines of sandboxes of these runs that still exist."""
    marks = {marked_argument(run_marker(run_id)).encode() for run_id in run_ids}
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if marks.intersection(words):
            found.append(f"{entry.name}: {words[-8:]}")
    return found


# People -----------------------------------------------------------------------------------------


def approver(storm: Storm, stop: threading.Event) -> None:
    """Decide all requests, mostly with an approval."""
    chance = random.Random(storm.seed + 1)
    while not stop.wait(0.05):
        for request in ApprovalRequest.objects.filter(status="pending", run__in=list(storm.names)):
            decision = chance.choices(("approve", "reject", "respond"), (8, 1, 1))[0]
            answer = DecisionRequest(decision, request.digest, reason="said the storm")
            try:
                decide_approval(request.id, answer, by=storm.user)
            except Conflict:
                continue  # the run was cancelled at the same time


def canceller(storm: Storm, stop: threading.Event) -> None:
    """Cancel every seventh run at a random time."""
    chance = random.Random(storm.seed + 2)
    done: set[str] = set()
    while not stop.wait(chance.uniform(0.05, 0.6)):
        for run_id, name in list(storm.names.items()):
            if int(name[1:]) % 7 == 3 and run_id not in done and chance.random() < 0.3:
                done.add(run_id)
                cancel_run(run_id, by="the storm")


@contextmanager
def people(storm: Storm, *roles: Callable[[Storm, threading.Event], None]) -> Iterator[None]:
    stop = threading.Event()

    def act(role: Callable[[Storm, threading.Event], None]) -> None:
        try:
            role(storm, stop)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(roles)) as threads:
        acting = [threads.submit(act, role) for role in roles]
        try:
            yield
        finally:
            stop.set()
        for one in acting:
            one.result()


@contextmanager
def storm(directory: Path, *, seed: int, lease: float | None, **options: Any) -> Iterator[Storm]:
    """Start a cluster, a model and people. `lease` is in seconds; None: the production value."""
    print(f"seed {seed}")
    environment = {"VEL_TEST_LEASE": str(lease)} if lease else {}
    user = make_user()
    with (
        guarded_transitions(),
        MessagesServer(play) as server,
        Watchers() as watchers,
        Cluster(
            directory,
            ANTHROPIC_BASE_URL=server.url,
            ANTHROPIC_API_KEY="test-key",
            **environment,
            **options,
        ) as cluster,
    ):
        make_agent(
            user,
            provider="anthropic",
            model="claude-sonnet-5-5",
            sandbox=True,
            interrupt_on=ASKS,
        )
        made = Storm(directory, cluster, server, watchers, user, seed)
        with people(made, approver, canceller):
            yield made
