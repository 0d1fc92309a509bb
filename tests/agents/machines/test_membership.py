"""Membership of a host: one data directory, one incarnation, and a name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django_q.conf import Conf
from django_q.models import OrmQ

from agents.engine.storage.lease import claim_run, orphaned_runs
from agents.models import Machine, Run, RunClock, Thread
from agents.queues import MachineQueue
from agents.services.erasure.actions import erase_thread
from agents.services.errors import Conflict
from agents.services.machines.actions import (
    adopt_threads,
    declare_dead,
    declare_silent_machines,
    forget_machine,
    machine_states,
    set_draining,
    staying_threads,
)
from agents.services.machines.membership import (
    MachineRefused,
    join_machine,
    machine_heartbeat,
    refuse_nameless,
)
from agents.services.placement import Member, queue_of
from agents.services.runs.start import RunRequest, create_run
from tests.support.machines import Machines, make_silent
from tests.support.runs import drive_to_end, make_agent, make_user, start_run
from velproject.cli.main import run_command_line

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def claim(run: Run, member: Member) -> bool:
    with transaction.atomic():
        return claim_run(run.pk, "pool", f"test:{member.name}", member) is not None


def join(machines: Machines, name: str) -> Member:
    with machines.on(name):
        return join_machine()


@pytest.fixture
def ada(machines: Machines) -> Iterator[User]:
    """Create a user with an agent. Calls without a host run on a host that only serves pages."""
    user = make_user()
    make_agent(user, sandbox=True)
    with machines.on("web"):
        yield user


def new_run(machines: Machines, ada: User, **fields: object) -> Run:
    with machines.on("web"):
        return start_run(ada, **fields)


def test_a_host_declared_dead_claims_and_pins_nothing(machines: Machines, ada: User) -> None:
    old, b = join(machines, "a"), join(machines, "b")
    pinned, free = new_run(machines, ada), new_run(machines, ada)
    assert claim(pinned, old)
    RunClock.objects.update(lease_until=0)
    make_silent("a")
    with machines.on("b"):
        declare_dead("a")
    assert machine_heartbeat(old) is None
    for run in (pinned, free):
        assert not claim(run, old)
    back = join(machines, "a")
    assert back.incarnation == old.incarnation + 1
    for run in (pinned, free):  # its other processes do not know this yet
        assert not claim(run, old)
    assert claim(pinned, b)
    assert claim(free, back)
    assert Thread.objects.get(pk=pinned.thread_id).host == "b"


def test_a_thread_has_one_host_in_any_race(machines: Machines, ada: User) -> None:
    members = [join(machines, "a"), join(machines, "b")]
    for _ in range(10):
        run, below = new_run(machines, ada), new_run(machines, ada)
        Thread.objects.filter(pk=below.thread_id).update(root=run.thread)
        [winner] = race([run, below], members)
        assert Thread.objects.get(pk=run.thread_id).host == winner


def race(runs: list[Run], members: list[Member]) -> list[str]:
    """Let hosts claim runs of one family at the same time; return the hosts that got one."""
    barrier, won = threading.Barrier(len(members)), list[str]()

    def compete(run: Run, member: Member) -> None:
        barrier.wait()
        try:
            if claim(run, member):
                won.append(member.name)
        finally:
            connection.close()

    racers = [
        threading.Thread(target=compete, args=pair) for pair in zip(runs, members, strict=True)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    return won


def test_a_death_waits_for_a_claim_under_way(machines: Machines, ada: User) -> None:
    old = join(machines, "a")
    run = new_run(machines, ada)
    make_silent("a")
    done = threading.Event()

    def die() -> None:
        try:
            with machines.on("a"):
                declare_dead("a")
        finally:
            done.set()
            connection.close()

    with transaction.atomic():
        assert claim_run(run.pk, "pool", "test", old) is not None
        killer = threading.Thread(target=die)
        killer.start()
        assert not done.wait(0.3)
    killer.join()
    assert Thread.objects.get(pk=run.thread_id).host == ""  # released after all


def test_a_drained_host_claims_nothing(machines: Machines, ada: User) -> None:
    a = join(machines, "a")
    with pytest.raises(Conflict, match="No other host"):
        set_draining("a", True)
    join(machines, "b")
    set_draining("a", True)
    sign = machine_heartbeat(a)
    assert sign is not None
    assert sign.is_draining
    run = new_run(machines, ada)
    assert not claim(run, a)
    set_draining("a", False)
    assert claim(run, a)


def test_each_host_looks_for_its_own_runs(machines: Machines, ada: User) -> None:
    a, b = join(machines, "a"), join(machines, "b")
    of_a, free, of_child = (new_run(machines, ada) for _ in range(3))
    assert claim(of_a, a)
    RunClock.objects.update(lease_until=0)
    Thread.objects.filter(pk=of_child.thread_id).update(root=of_a.thread)
    assert set(orphaned_runs("pool", 9, a)) == {of_a.pk, free.pk, of_child.pk}
    assert orphaned_runs("pool", 9, b) == [free.pk]
    RunClock.objects.filter(run=of_a).update(cancel_requested=True)
    assert of_a.pk in orphaned_runs("pool", 9, b)
    assert claim(of_a, b)  # any host ends a cancelled run
    assert Thread.objects.get(pk=of_a.thread_id).host == "a"


def test_tasks_go_to_the_host_of_the_thread(machines: Machines, ada: User) -> None:
    a = join(machines, "a")
    run = new_run(machines, ada)
    assert OrmQ.objects.get().key == Conf.CLUSTER_NAME
    assert claim(run, a)
    Run.objects.update(status="completed")
    OrmQ.objects.all().delete()
    new_run(machines, ada, thread=run.thread_id)
    assert OrmQ.objects.get().key == queue_of("a")
    with machines.on("b"):
        assert MachineQueue(Conf.CLUSTER_NAME).dequeue() is None
    make_silent("a")
    with machines.on("b"):
        declare_dead("a")
        assert MachineQueue(Conf.CLUSTER_NAME).dequeue() is not None


def test_a_host_reads_its_own_queue_and_the_common_one(machines: Machines, ada: User) -> None:
    a = join(machines, "a")
    run = new_run(machines, ada)
    assert claim(run, a)
    Run.objects.update(status="completed")
    new_run(machines, ada, thread=run.thread_id)
    with machines.on("a"):
        queue = MachineQueue(Conf.CLUSTER_NAME)
        taken = [queue.dequeue(), queue.dequeue()]
        assert all(taken)
        assert queue.dequeue() is None


def test_two_machines_do_not_have_one_name(machines: Machines) -> None:
    join(machines, "a")
    assert join(machines, "a").incarnation == 1
    (machines.data("a") / "host").unlink()
    with pytest.raises(MachineRefused, match="another data directory"):
        join(machines, "a")
    make_silent("a")
    with pytest.raises(MachineRefused):
        join(machines, "a")  # its threads' files are missing: an operator must confirm the loss
    with machines.on("b"):
        declare_dead("a")
    assert join(machines, "a").incarnation == 2


def test_a_process_without_a_name_is_refused(machines: Machines) -> None:
    refuse_nameless()
    join(machines, "a")
    with pytest.raises(MachineRefused, match="VEL_HOST"):
        refuse_nameless()
    with pytest.raises(Conflict, match="is alive"):
        forget_machine("a")
    make_silent("a")
    forget_machine("a")
    refuse_nameless()


def test_a_lost_host_with_threads_in_directories_of_users_is_forgotten_after_them(
    machines: Machines, ada: User
) -> None:
    a = join(machines, "a")
    stays, moves = new_run(machines, ada), new_run(machines, ada)
    Thread.every.filter(pk=stays.thread_id).update(workspace_path="/home/ada/project")
    assert claim(stays, a)
    assert claim(moves, a)
    Run.objects.update(status="completed")
    make_silent("a")
    with machines.on("b"):
        with pytest.raises(Conflict, match="declare it dead"):
            forget_machine("a")
        assert declare_dead("a") == 1
        assert staying_threads("a") == [stays.thread_id]
        with pytest.raises(Conflict, match=f"vel prune --thread {stays.thread_id} --apply"):
            forget_machine("a")
        erase_thread(stays.thread_id, by=ada)
        forget_machine("a")
    assert not Machine.objects.filter(name="a").exists()


def test_draining_does_not_wait_for_threads_in_directories_of_users(
    machines: Machines, ada: User, capsys: pytest.CaptureFixture[str]
) -> None:
    a, _ = join(machines, "a"), join(machines, "b")
    run = new_run(machines, ada)
    Thread.every.filter(pk=run.thread_id).update(workspace_path="/home/ada/project")
    assert claim(run, a)
    make_silent("a", -60)
    make_silent("b", -60)
    with machines.on("b"):
        assert run_command_line(["hosts", "drain", "a"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "threads on a: 1",
        "Threads that stay on a, in directories of its users: 1. Before `vel hosts forget`, erase "
        f"them: vel prune --thread {run.thread_id} --apply",
        "a is drained",
    ]
    assert {row.name: row.state for row in machine_states()}["a"] == "drained"


def test_a_program_does_not_continue_another_hosts_thread(machines: Machines, ada: User) -> None:
    a = join(machines, "a")
    run = new_run(machines, ada)
    assert claim(run, a)
    Run.objects.update(status="completed")
    request = RunRequest("tester", "Hello", thread=run.thread_id, executor="cli")
    with machines.on("b"), pytest.raises(Conflict, match="host a"):
        create_run(request, owner=ada)
    with machines.on("a"):
        create_run(request, owner=ada)


def test_silent_hosts_are_declared_dead_by_others(machines: Machines) -> None:
    for name in ("a", "b", "c"):
        join(machines, name)
    make_silent("a", 100)
    make_silent("c", 50)
    with machines.on("b"):
        assert declare_silent_machines(60) == ["a"]
        assert declare_silent_machines(60) == []
    assert Machine.objects.get(pk="c").dead_at is None


def test_threads_of_a_former_name_are_adopted(machines: Machines, ada: User) -> None:
    with machines.on(""):
        run = start_run(ada)  # from before there were hosts
    before = Thread.objects.get(pk=run.thread_id).host
    a = join(machines, "a")
    assert not claim(run, a)
    with machines.on("a"):
        assert adopt_threads(before) == 1
        with pytest.raises(Conflict, match="is another host"):
            adopt_threads("a")
    assert claim(run, a)


def test_shared_workspaces_must_be_shared(machines: Machines, ada: User, tmp_path: Path) -> None:
    def on(name: str, directory: Path) -> Member:
        with machines.on(name, SHARED_WORKSPACES=True, DATA_DIR=directory):
            return join_machine()

    (tmp_path / "1").mkdir()
    a = on("a", tmp_path / "1")
    with pytest.raises(MachineRefused, match="not the same"):
        on("b", tmp_path / "2")
    assert not Machine.objects.filter(pk="b").exists()
    b = on("b", tmp_path / "1")
    with pytest.raises(MachineRefused, match="VEL_SHARED_WORKSPACES"):
        join(machines, "c")
    run = new_run(machines, ada)
    with machines.on("a", SHARED_WORKSPACES=True, DATA_DIR=tmp_path / "1"):
        assert claim(run, a)
        RunClock.objects.update(lease_until=0)
        assert claim(run, b)
    assert Thread.objects.get(pk=run.thread_id).host == ""


@pytest.mark.slow
def test_a_host_takes_runs_as_soon_as_it_has_joined(
    machines: Machines, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host joins with its first check, for which no process waits."""
    monkeypatch.setattr("agents.engine.process.sweeper.QUEUE_SWEEP_SECONDS", 3600)
    run = new_run(machines, ada)
    with machines.on("a"):
        assert drive_to_end(run).status == "completed"
