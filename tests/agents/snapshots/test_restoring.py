"""Restore a workspace, undo it, and refuse it during a run."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agents.models import ApprovalRequest, Run, SnapshotCause, WorkspaceSnapshot
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict, NotFound
from agents.services.files import restoring
from agents.services.files.changes import steps_of_turn
from agents.services.files.restoring import restore_workspace
from agents.services.files.snapshots import snapshot_store
from agents.states import RunStatus
from sandbox.snapshots import Restored, restore
from tests.agents.snapshots.driven import area, calls, command, play, write
from tests.support.runs import drive_to_end, start_run, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]


def ada() -> User:
    return User.objects.get(username="ada")


@pytest.mark.slow
def test_the_state_before_and_after_any_turn_comes_back(tmp_path: Path) -> None:
    run = play(
        tmp_path,
        write("a", "first"),
        write("a", "second"),
        command("mv a b; echo '#!/bin/sh' > tool; chmod 755 tool"),
    )
    before, after = steps_of_turn(run.thread_id, run.id, 2)
    assert restore_workspace(run.thread, before, by=ada()).failed == []
    assert sorted(os.listdir(area(run))) == ["a"]
    assert (area(run) / "a").read_text() == "first"
    restore_workspace(run.thread, after, by=ada())
    assert (area(run) / "a").read_text() == "second"
    # The restore's own row can undo it.
    row = WorkspaceSnapshot.objects.filter(cause=SnapshotCause.RESTORE).earliest("pk")
    assert row.by == ada()
    restore_workspace(run.thread, row.base, by=ada())
    assert sorted(os.listdir(area(run))) == ["b", "tool"]
    assert (area(run) / "tool").stat().st_mode & 0o777 == 0o755
    owner = area(run).stat().st_uid
    assert {path.stat().st_uid for path in area(run).iterdir()} == {owner}
    # The agent continues with the restored files.
    later = play(tmp_path, command("echo more >> b; cat b"), thread=run.thread)
    assert "second" in calls(later)[0].result


def test_unrecorded_changes_are_saved_before_a_restore(tmp_path: Path) -> None:
    run = play(tmp_path, write("a", "first"), write("a", "second"))
    (area(run) / "mine").write_text("a person's")
    before, _ = steps_of_turn(run.thread_id, run.id, 2)
    restore_workspace(run.thread, before, by=ada())
    assert not (area(run) / "mine").exists()
    row = WorkspaceSnapshot.objects.latest("pk")
    restore_workspace(run.thread, row.base, by=ada())
    assert (area(run) / "mine").read_text() == "a person's"


def test_a_restore_that_fails_half_way_can_be_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = play(tmp_path, write("a", "first"), write("a", "second"))
    (area(run) / "mine").write_text("a person's")
    before, _ = steps_of_turn(run.thread_id, run.id, 2)

    def restore_without_room(*arguments: Any) -> Restored:
        # No file may grow any more: deleting works, and each write fails.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        return restore(*arguments)

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with monkeypatch.context() as context:
        context.setattr(restoring, "restore", restore_without_room)
        try:
            with pytest.raises(Conflict, match="could not be restored") as refused:
                restore_workspace(run.thread, before, by=ada())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refused.value.code == "restore_failed"
    assert not (area(run) / "mine").exists()
    assert (area(run) / "a").read_text() == "second"
    row = WorkspaceSnapshot.objects.latest("pk")
    assert row.cause == SnapshotCause.OUTSIDE
    restore_workspace(run.thread, row.manifest, by=ada())
    assert (area(run) / "mine").read_text() == "a person's"


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING])
def test_nothing_is_restored_while_a_run_is_at_work(tmp_path: Path, status: str) -> None:
    run = play(tmp_path, write("a", "first"), write("a", "second"))
    before, _ = steps_of_turn(run.thread_id, run.id, 2)
    other = start_run(ada(), thread=run.thread_id)
    Run.objects.filter(pk=other.pk).update(status=status)
    with pytest.raises(Conflict, match="at work"):
        restore_workspace(run.thread, before, by=ada())
    assert (area(run) / "a").read_text() == "second"


def test_an_approval_from_before_a_restore_is_asked_again(tmp_path: Path) -> None:
    run = play(tmp_path, write("a", "first"), write("a", "second"))
    before, _ = steps_of_turn(run.thread_id, run.id, 2)
    waiting = play(
        tmp_path,
        command("cat a"),
        thread=run.thread,
        ends="waiting",
        interrupt_on={"execute": True},
    )
    request = ApprovalRequest.objects.get(run=waiting)
    restore_workspace(run.thread, before, by=ada())
    decide_approval(
        request.pk, DecisionRequest(decision="approve", digest=request.digest), by=ada()
    )
    drive_to_end(waiting, until=("waiting",))
    asked = ApprovalRequest.objects.filter(run=waiting, status="pending").get()
    assert asked.pk != request.pk
    assert "changed since" in asked.prompt


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_driver_waits_for_a_restore_to_end(tmp_path: Path) -> None:
    """The first call that may write starts when the restore has released its lock."""
    run = play(tmp_path, write("a", "first"))
    order: list[str] = []
    store = snapshot_store(run.thread_id)

    def drive() -> None:
        try:
            play(tmp_path, command("echo x > b"), thread=run.thread)
            order.append("run")
        finally:
            connection.close()

    with store.lock:
        thread = threading.Thread(target=drive)
        thread.start()
        wait_until(
            lambda: Run.objects.filter(thread=run.thread, tool_calls__status="started").exists(),
            "the call",
        )
        assert not (area(run) / "b").exists()
        order.append("restore")
    thread.join()
    assert order == ["restore", "run"]
    assert (area(run) / "b").exists()


def test_restoring_a_pruned_state_changes_nothing(tmp_path: Path) -> None:
    run = play(tmp_path, write("a", "first"))
    for state in ("0" * 64, "../../etc/passwd", "head"):
        with pytest.raises(NotFound):
            restore_workspace(run.thread, state, by=ada())
    assert (area(run) / "a").read_text() == "first"
