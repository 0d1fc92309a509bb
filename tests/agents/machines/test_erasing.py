"""Erasing removes a thread's files from the disks of all hosts, and no other files."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from agents.models import ErasedFiles, Machine, Run, Thread
from agents.services.erasure.actions import erase_thread, finish_erasures
from agents.services.erasure.elsewhere import remove_erased_here
from agents.services.machines.actions import declare_dead, forget_machine, set_draining
from tests.agents.snapshots.driven import play
from tests.support.machines import Machines, make_silent
from tests.support.runs import make_user, running_worker, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
]

WRITES = ("write_file", {"path": "note.txt", "content": "secret"})


@pytest.fixture
def ada(machines: Machines) -> User:
    return make_user(is_superuser=True)


def ran_on_a(machines: Machines, tmp_path: Path) -> Run:
    for name in ("b", "a"):
        with machines.on(name), running_worker():
            wait_until(lambda name=name: Machine.objects.filter(name=name).exists())
    with machines.on("a"):
        return play(tmp_path, WRITES)


def lying(machines: Machines, name: str, thread_id: str) -> list[str]:
    return [str(path) for path in machines.data(name).rglob("*") if thread_id in str(path)]


def erase_from_b(machines: Machines, ada: User, thread_id: str) -> None:
    with machines.on("b"):
        erase_thread(thread_id, by=ada)
        finish_erasures()
    assert not Thread.every.filter(pk=thread_id).exists()


def test_a_former_host_of_the_thread_removes_its_files(
    ada: User, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ran_on_a(machines, tmp_path)
    make_silent("b", -60)  # b is alive, so it can take the threads of a
    with machines.on("a"):
        set_draining("a", True)
        with running_worker():
            wait_until(lambda: Thread.objects.get(pk=run.thread_id).host == "")
    erase_from_b(machines, ada, run.thread_id)
    assert lying(machines, "a", run.thread_id)

    monkeypatch.setattr("agents.engine.process.pruner.LOOK_SECONDS", 0.1)
    with machines.on("a"), running_worker():
        wait_until(lambda: not ErasedFiles.objects.filter(host="a").exists())
    assert not lying(machines, "a", run.thread_id)
    with machines.on("b"):
        assert remove_erased_here() == 1
    assert not ErasedFiles.objects.exists()


def test_a_dead_host_does_it_when_it_is_back(ada: User, machines: Machines, tmp_path: Path) -> None:
    run = ran_on_a(machines, tmp_path)
    make_silent("a")
    with machines.on("b"):
        declare_dead("a")
    erase_thread(run.thread_id, by=ada)  # in a program outside of all hosts
    with machines.on("a"):
        assert remove_erased_here() == 0  # it may still drive the run, without this information
        assert lying(machines, "a", run.thread_id)
        with running_worker():
            wait_until(lambda: Machine.objects.filter(name="a", dead_at=None).exists())
        assert remove_erased_here() == 1
    assert not lying(machines, "a", run.thread_id)


def test_failed_removals_are_retried(
    ada: User, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [ran_on_a(machines, tmp_path), ran_on_a(machines, tmp_path)]
    make_silent("a")
    with machines.on("b"):
        declare_dead("a")
    for run in runs:
        erase_from_b(machines, ada, run.thread_id)
    Machine.objects.filter(name="a").update(dead_at=None)
    with machines.on("a"), monkeypatch.context() as broken:

        def fails(thread_id: str) -> None:
            raise OSError("the disk is away")

        broken.setattr("agents.services.erasure.elsewhere.erase_files_here", fails)
        assert remove_erased_here() == 0
        assert ErasedFiles.objects.filter(host="a").count() == 2
    with machines.on("a"):
        assert remove_erased_here(stop=lambda: True) == 0
        assert remove_erased_here() == 2
    assert not any(lying(machines, "a", run.thread_id) for run in runs)


@pytest.mark.slow
def test_threads_that_are_not_erased_stay(ada: User, machines: Machines, tmp_path: Path) -> None:
    """Simulate another database: no directory belongs to one of its threads."""
    run = ran_on_a(machines, tmp_path)
    Thread.every.filter(pk=run.thread_id).update(host="")
    run.events.all().delete()
    before = lying(machines, "a", run.thread_id)
    ErasedFiles.objects.create(host="b", thread=run.thread_id)  # another host's
    with machines.on("a"):
        assert remove_erased_here() == 0
    with override_settings():
        assert remove_erased_here() == 0  # one machine alone
    assert lying(machines, "a", run.thread_id) == before

    make_silent("b")
    forget_machine("b")
    assert not ErasedFiles.objects.exists()
