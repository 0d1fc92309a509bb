"""Hosts that die, return, lose the network or are drained while both have active runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from agents.models import Machine, Run, RunClock, RunEvent, ToolCall
from agents.services.machines.actions import machine_states, set_draining
from tests.chaos.several_machines import SeveralMachines, two_machines
from tests.chaos.storm import leftover_sandboxes
from tests.chaos.test_worker_death import any_seed
from tests.support import network
from tests.support.runs import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
]

LEASE = 6.0
SHORT_LEASE = 3.0
"""Used where a test accepts that a lease expires because this machine is busy."""


def die(running: SeveralMachines) -> None:
    """Kill the host like a power failure; then start it again with its old files."""
    running.wait_until_both_drive()
    far = RunClock.objects.filter(run__thread__host="a", run__status="running", turn__gte=2)
    wait_until(far.exists, "a run on the host a that is in the middle of its work")
    running.storm.pause(0.0, 0.3)
    running.clusters["a"].kill_tree()
    print(f"{running.let_die('a')} threads moved")
    running.clusters["a"].start()


@pytest.mark.slow
def test_all_runs_end_right_when_a_host_dies_and_comes_back(directory: Path) -> None:
    with two_machines(directory, seed=any_seed(), lease=SHORT_LEASE, at_once=2) as running:
        running.storm.start_runs(4)
        die(running)
        running.storm.wait_for_all()
        running.check()
        print(running.storm.summary())
        assert Machine.objects.get(pk="a").incarnation == 2


@pytest.mark.storm
def test_fifty_runs_end_right_when_one_of_two_hosts_dies(directory: Path) -> None:
    with two_machines(directory, seed=any_seed(), lease=LEASE, at_once=25) as running:
        running.storm.start_runs(50)
        die(running)
        running.storm.wait_for_all()
        running.check()
        print(running.storm.summary())
        lost = RunEvent.objects.filter(type="run.resumed", data__contains="its worker was lost")
        print(f"{lost.count()} times a run was taken from the dead host")
        assert lost.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "runs", [pytest.param(4, id="test"), pytest.param(12, marks=pytest.mark.storm, id="storm")]
)
def test_runs_of_a_drained_host_continue_elsewhere(directory: Path, runs: int) -> None:
    with two_machines(directory, seed=any_seed(), lease=LEASE, at_once=2) as running:
        running.storm.start_runs(runs)
        running.wait_until_both_drive()
        running.storm.wait_for_progress()
        set_draining("a", True)
        wait_until(lambda: not running.held_by("a"), "its threads to leave")
        assert {row.name: row.state for row in machine_states()}["a"] == "drained"
        assert running.clusters["a"].terminate()
        running.storm.wait_for_all()
        running.check()
        # Each step finished before its run was moved.
        assert not ToolCall.objects.filter(status="interrupted").exists()
        assert not RunEvent.objects.filter(type="run.resumed", data__contains="lost").exists()


@pytest.mark.root
def test_a_host_that_is_cut_off_doubles_nothing(directory: Path) -> None:
    if connection.vendor == "postgresql" and (reason := network.missing()):
        pytest.skip(reason)
    with two_machines(directory, seed=any_seed(), lease=LEASE, cut=True) as running:
        running.storm.start_runs(8)
        running.wait_until_both_drive()
        running.storm.wait_for_progress()
        assert running.network is not None
        mine = set(running.storm.names)
        held = set(running.held_by("a"))
        running.network.unplug()
        running.let_die("a")
        # The host has been silent for a lease, so it must have stopped its work.
        runs = Run.objects.filter(thread__in=held, pk__in=mine).values_list("pk", flat=True)
        assert sandboxes_of(running, set(runs)) == []
        running.network.plug()
        running.storm.wait_for_all()
        wait_until(lambda: Machine.objects.get(pk="a").dead_at is None, "the return of the host")
        running.check()
        print(running.storm.summary())


def sandboxes_of(running: SeveralMachines, run_ids: set[str]) -> list[str]:
    """Return the sandboxes of the runs that no other host has taken over."""
    taken = Run.objects.filter(pk__in=run_ids).exclude(thread__host="")
    return leftover_sandboxes(run_ids - set(taken.values_list("pk", flat=True)))
