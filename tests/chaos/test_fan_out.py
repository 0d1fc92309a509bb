"""Parents on real workers: they wait without a worker, and their children run in parallel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.models import Run
from tests.chaos.family_story import FamilyServer, check_fan, fan
from tests.support.cluster import Cluster
from tests.support.runs import make_agent, make_user, start_run, wait_for_status

DELAY = 1.2

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def workers(
    directory: Path, server: FamilyServer, workers: int = 2, at_once: int = 20, **environment: str
) -> Iterator[Any]:
    """Start worker processes and create an agent that delegates. Yield its owner."""
    user = make_user()
    make_agent(
        user,
        provider="anthropic",
        model="claude-sonnet-5-5",
        max_concurrent_subagents=at_once,
        subagent_depth=2,
    )
    keys = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "test-key"}
    with Cluster(directory, workers=workers, **keys, **environment):
        yield user


def drive_fan(user: Any, name: str, width: int) -> tuple[Run, float]:
    """Start a parent and wait for its end. Return the run and its duration in seconds."""
    begun = time.monotonic()
    run = wait_for_status(start_run(user, fan(name, width)), "completed", "failed")
    taken = time.monotonic() - begun
    assert run.status == "completed", run.error_message
    check_fan(run, name, width)
    return run, taken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "together"),
    [
        pytest.param((8,), 4, id="test"),
        pytest.param((1, 5, 20), 10, marks=pytest.mark.storm, id="storm"),
    ],
)
def test_the_children_of_a_call_work_at_the_same_time(
    directory: Path, widths: tuple[int, ...], together: int
) -> None:
    with FamilyServer(delay=DELAY) as server, workers(directory, server) as user:
        drive_fan(user, "warm", 2)
        for width in widths:
            run, taken = drive_fan(user, f"n{width}", width)
            spans = run.children.values_list("started_at", "ended_at")
            longest = max((ended - begun).total_seconds() for begun, ended in spans)
            print(f"{width} children: {taken:.2f} s; the slowest {longest:.2f} s")
        assert server.most_at_once > together
        assert server.violations == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "at_once"),
    [pytest.param(9, 3, id="test"), pytest.param(20, 5, marks=pytest.mark.storm, id="storm")],
)
def test_concurrent_model_calls_of_children_are_limited_by_the_agent(
    directory: Path, width: int, at_once: int
) -> None:
    with FamilyServer(delay=0.4) as server, workers(directory, server, at_once=at_once) as user:
        drive_fan(user, "n", width)
    assert 1 < server.most_at_once <= at_once


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_parent_holds_no_worker_while_its_children_work(directory: Path) -> None:
    """One process that drives one run at a time must suffice for three generations."""
    server = FamilyServer(delay=0.05, with_twigs=True)
    with server, workers(directory, server, 1, VEL_TEST_RUNS_PER_WORKER="1") as user:
        run, _ = drive_fan(user, "n", 3)
    assert Run.objects.get(parent__parent=run).depth == 2
