"""An erased thread keeps its usage totals, and no content."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings as project
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection, transaction
from django.db.models import PROTECT, RESTRICT
from django.utils import timezone
from django_q.models import OrmQ

from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.kernel.erasure import Stays
from agents.models import (
    Agent,
    ApprovalRequest,
    AuditEntry,
    EndedRun,
    IdempotencyKey,
    Message,
    Run,
    RunEvent,
    Thread,
    UsageTotal,
)
from agents.selectors.usage import spent_since, usage_by_day
from agents.selectors.visible import approvals_for, runs_for, threads_for, watchable_runs_for
from agents.services.erasure import actions
from agents.services.erasure.actions import (
    FINISH_TASK,
    erase_answers_of,
    erase_thread,
    erasures_wait,
    finish_erasures,
)
from agents.services.errors import Conflict, NotFound, ServiceError
from agents.services.files.workspaces import assign_sandbox_uid, open_workspace, workspace_location
from agents.services.runs.ends import take_ended_run
from agents.settings import DataSettings
from agents.states import RunStatus
from memory.erasure import remembered_from
from memory.models import MemoryEditRequest, MemoryRevision
from tests.agents.api.rows import answer_run, ask_approval, make_agent, make_run, make_user
from tests.agents.engine.by_hand import at_once
from tests.support.planting import hanging, make_row, plant, rows_with
from tests.support.subagents import delegate

SAID = "the purple elephant 7f3a91"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> User:
    make_agent(sandbox=False)
    return make_user("ann")


def talked(owner: User, text: str = SAID, **more: Any) -> Run:
    """Create a run with the message `text` and an answer with costs."""
    run = make_run(owner, message=text, **more)
    answer_run(run, text)
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now())
    Message.objects.filter(run=run, turn=1).update(
        model="m", input_tokens=10, output_tokens=5, cost_microusd=7
    )
    run.refresh_from_db()
    return run


def delegated(run: Run) -> list[Run]:
    Run.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING)
    with transaction.atomic():
        return delegate(run, SAID)


def used(owner: User) -> tuple[Any, ...]:
    month = timezone.now().replace(day=1)
    return (
        usage_by_day(owner, 30, ZoneInfo("UTC"), own=True),
        usage_by_day(owner, 30, ZoneInfo("Asia/Kathmandu"), own=True),
        spent_since(month, Agent.objects.get(slug="writer").pk, owner.pk),
    )


@pytest.mark.slow
def test_no_message_is_left_in_any_table(ann: User) -> None:
    run = talked(ann)
    planted = plant(run, said=SAID)
    assert {"agents.ToolCall", "agents.RunEvent", "memory.MemoryEditRequest"} <= planted
    RunEvent.objects.bulk_create(
        RunEvent(run=run, seq=seq, type="x", data=SAID, created_at=timezone.now())
        for seq in range(100_000, 101_203)
    )
    for below in delegated(run):
        plant(below, said=SAID)
    Run.objects.update(status=RunStatus.COMPLETED)
    other = talked(ann, "something else")
    RunEvent.objects.create(run=other, seq=1, type="x", data="kept", created_at=timezone.now())
    before = used(ann)
    there = rows_with(SAID)
    assert len(there) > 12
    assert "memory_memoryeditrequest" in there

    erase_thread(run.thread_id, by=ann)
    finish_erasures()

    assert rows_with(SAID) == set()
    assert not erasures_wait()
    assert [row.pk for row in Thread.every.all()] == [other.thread_id]
    assert Message.objects.filter(run=other).count() == 2
    assert RunEvent.objects.filter(run=other).exists()
    assert used(ann) == before
    connection.check_constraints()


def test_every_reference_to_a_thread_can_be_followed() -> None:
    """A protected reference to a thread would stop the erasure halfway."""
    seen: set[Any] = set()
    wait: list[Any] = [Thread]
    while wait:
        model = wait.pop()
        if model in seen:
            continue
        seen.add(model)
        for other, field, _ in hanging(model):
            reference: Any = other._meta.get_field(field)
            on_delete = reference.remote_field.on_delete
            assert on_delete not in (PROTECT, RESTRICT), f"{other.__name__}.{field}"
            wait.append(other)
    assert len(seen) > 15


def test_an_erased_thread_disappears_from_all_doors_immediately(ann: User) -> None:
    run = talked(ann, key="mine")
    request = make_row(ApprovalRequest, {"run": run, "tool_call": None}, SAID)
    erase_thread(run.thread_id, by=ann)
    boss = make_user("boss", superuser=True)
    for person in (ann, boss):
        assert not runs_for(person).exists()
        assert not watchable_runs_for(person).exists()
        assert not threads_for(person).exists()
        assert not approvals_for(person).filter(pk=request.pk).exists()
    assert not Run.objects.filter(pk=run.pk).exists()
    assert Run.every.filter(pk=run.pk).exists()
    with pytest.raises(NotFound):
        erase_thread(run.thread_id, by=ann)
    # The key is free again.
    assert make_run(ann, key="mine").thread_id != run.thread_id


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING])
def test_a_thread_at_work_is_left_alone(ann: User, status: str) -> None:
    run = talked(ann)
    Run.objects.filter(pk=run.pk).update(status=status)
    with pytest.raises(Conflict):
        erase_thread(run.thread_id, by=ann)
    assert not erasures_wait()


def test_workers_are_notified_immediately(ann: User) -> None:
    run = talked(ann)
    before = OrmQ.objects.count()
    erase_thread(run.thread_id, by=ann)
    assert [task.func() for task in OrmQ.objects.order_by("pk")[before:]] == [FINISH_TASK]
    assert Thread.every.get(pk=run.thread_id).title == ""  # it was the start of the first message


@pytest.mark.slow
def test_of_concurrent_erasing_and_continuing_only_one_happens(ann: User) -> None:
    for _ in range(6):
        thread = talked(ann).thread_id
        outcomes = at_once(
            partial(erase_thread, thread, by=ann), partial(make_run, ann, thread=thread)
        )
        refused = [each for each in outcomes if isinstance(each, Exception)]
        assert len(refused) == 1, outcomes
        assert isinstance(refused[0], ServiceError), refused
        erased = Thread.every.filter(pk=thread, erased_at__isnull=False).exists()
        assert Run.every.filter(thread=thread, is_erased=False).exists() is not erased


def test_the_end_of_an_erased_run_does_not_block_other_ends(ann: User) -> None:
    gone, other = talked(ann), talked(ann)
    now = timezone.now()
    EndedRun.objects.create(run=gone, due_at=now - timedelta(seconds=2))
    EndedRun.objects.create(run=other, due_at=now - timedelta(seconds=1))
    erase_thread(gone.thread_id, by=ann)
    with transaction.atomic():
        found = take_ended_run()
    assert found is not None
    assert found[1].pk == other.pk
    finish_erasures()
    assert not EndedRun.objects.filter(run=gone.pk).exists()


def test_a_subagent_at_work_keeps_its_parents_thread(ann: User) -> None:
    run = talked(ann)
    delegated(run)
    Run.objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED)
    with pytest.raises(Conflict):
        erase_thread(run.thread_id, by=ann)
    child = Run.objects.get(parent=run)
    with pytest.raises(NotFound):
        erase_thread(child.thread_id, by=ann)


def test_after_any_interruption_the_sums_are_correct_and_erasing_continues(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "BATCH", 2)
    for _ in range(3):
        run = talked(ann)
        plant(run, said=SAID)
    before = used(ann)
    for thread in list(Thread.objects.all()):
        erase_thread(thread.pk, by=ann)
    assert used(ann) == before
    looks = 0
    while erasures_wait():
        steps = iter([False] * (looks % 7) + [True])
        finish_erasures(partial(next, steps, True))
        assert used(ann) == before
        connection.check_constraints()
        looks += 1
        assert looks < 1000
    assert looks > 20
    assert rows_with(SAID) == set()
    assert UsageTotal.objects.get().calls == 3


_KILLED = """
import django, os, signal; django.setup()
from agents.selectors.visible import approvals_for, runs_for, threads_for, watchable_runs_for
from agents.services.erasure import actions
from agents.services.erasure.actions import finish_erasures
actions.BATCH = 2
asked = [0]
def stop():
    asked[0] += 1
    if asked[0] == 9:
        os.kill(os.getpid(), signal.SIGKILL)
finish_erasures(stop)
"""


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_half_visible(ann: User) -> None:
    run = talked(ann)
    plant(run, said=SAID)
    before = used(ann)
    erase_thread(run.thread_id, by=ann)
    name = connection.settings_dict["NAME"]
    server = os.environ.get("VEL_TEST_DATABASE_URL", "")
    url = urlsplit(server)._replace(path=f"/{name}").geturl() if server else f"sqlite:///{name}"
    environment = {**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(project.BASE_DIR)}
    environment["DJANGO_SETTINGS_MODULE"] = "velproject.cli.settings"
    done = subprocess.run([sys.executable, "-c", _KILLED], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert erasures_wait()
    assert not Run.objects.exists()
    assert used(ann) == before
    finish_erasures()
    assert rows_with(SAID) == set()
    assert used(ann) == before


def test_concurrent_erasures_count_each_reply_once(ann: User) -> None:
    for _ in range(4):
        talked(ann)
    before = used(ann)
    for thread in list(Thread.objects.all()):
        erase_thread(thread.pk, by=ann)
    outcomes = at_once(*[finish_erasures] * 3)
    assert all(not isinstance(outcome, Exception) for outcome in outcomes)
    finish_erasures()
    assert UsageTotal.objects.get().calls == 4
    assert used(ann) == before


@pytest.fixture
def with_files(ann: User) -> Run:
    Agent.objects.all().delete()
    make_agent(sandbox=True)
    run = talked(ann)
    assign_sandbox_uid(run.thread)
    workspace = open_workspace(workspace_location(run.thread))
    (workspace.directories["workspace"] / "a").write_text(SAID)
    (DataSettings.now().snapshots / run.thread_id).mkdir(parents=True)
    DataSettings.now().archives.mkdir(exist_ok=True)
    (DataSettings.now().archives / f"{run.thread_id}-20260101T000000Z-aa.tar.gz").write_text(SAID)
    return run


def files_of(thread_id: str) -> list[Path]:
    base = DataSettings.now().DATA_DIR
    return [path for path in base.glob("*/*") if thread_id in path.name]


def test_files_are_removed_before_their_rows(ann: User, with_files: Run) -> None:
    thread = with_files.thread_id
    assert len(files_of(thread)) == 3
    snapshots = DataSettings.now().snapshots / thread
    snapshots.rmdir()
    snapshots.symlink_to("/etc")  # links are not followed, and it is not a file of Vel's
    erase_thread(thread, by=ann)
    finish_erasures()
    assert erasures_wait()
    assert Message.objects.filter(run=with_files.pk).exists()
    snapshots.unlink()
    finish_erasures()
    assert not erasures_wait()
    assert files_of(thread) == []


def test_files_of_others_stay(ann: User, with_files: Run) -> None:
    run = talked(ann, "another conversation")
    erase_thread(run.thread_id, by=ann)
    finish_erasures()
    assert not erasures_wait()
    assert len(files_of(with_files.thread_id)) == 3


def test_answers_that_are_kept_for_others_stay(ann: User) -> None:
    for at, owner in enumerate((ann, make_user("bob"))):
        IdempotencyKey.objects.create(owner=owner, key=f"a{at}", body_hash="", answer="{}")
        IdempotencyKey.objects.create(owner=owner, key=f"b{at}", body_hash="")
    erase_answers_of(ann.pk)
    assert sorted(row.key for row in IdempotencyKey.objects.all()) == ["a1", "b0", "b1"]


def test_a_directory_of_the_callers_own_stays(ann: User, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    run = talked(ann, workspace_path=str(tmp_path))
    erase_thread(run.thread_id, by=ann)
    finish_erasures()
    assert (tmp_path / "a").read_text() == "mine"


def test_another_hosts_thread_is_left_to_it_for_a_day(ann: User, settings: Any) -> None:
    run = talked(ann)
    storage = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, "vel": storage}
    settings.VEL = {**settings.VEL, "HOST": "one"}
    kept = f"snapshots/{run.thread_id}/objects/a"
    storages["vel"].save(kept, ContentFile(SAID))
    Thread.objects.update(host="another")
    erase_thread(run.thread_id, by=ann)
    finish_erasures()
    assert erasures_wait()
    Thread.every.update(erased_at=timezone.now() - timedelta(hours=25))
    finish_erasures()
    assert not erasures_wait()
    assert not storages["vel"].exists(kept)


def test_a_fork_stays_whole(ann: User) -> None:
    run = talked(ann)
    with prepared_fork(run, ForkRequest(), by=ann) as made:
        complete_fork(made)
    before = list(Message.objects.filter(run__thread=made.thread).values_list("content", flat=True))
    erase_thread(run.thread_id, by=ann)
    with pytest.raises(NotFound), prepared_fork(run, ForkRequest(), by=ann) as late:
        complete_fork(late)  # the fork was created during the erasure of its source
    finish_erasures()
    kept = Message.objects.filter(run__thread=made.thread).values_list("content", flat=True)
    assert list(kept) == before
    made.thread.refresh_from_db()
    assert made.thread.forked_from_id is None


def test_the_audit_log_records_it_without_the_messages(ann: User) -> None:
    run = talked(ann)
    erase_thread(run.thread_id, by=ann)
    finish_erasures()
    entry = AuditEntry.objects.get(action="thread.erased")
    assert (entry.actor, entry.target_id) == ("ann", run.thread_id)
    assert SAID not in str(entry.__dict__)


def test_stored_answers_of_idempotency_keys_are_erased_too(ann: User) -> None:
    run = talked(ann)
    answer = f'{{"thread": "{run.thread_id}", "message": "{SAID}"}}'
    IdempotencyKey.objects.create(owner=ann, key="a", body_hash="", status=201, answer=answer)
    IdempotencyKey.objects.create(owner=ann, key="b", body_hash="", status=201, answer="{}")
    (child,) = delegated(run)
    Run.objects.update(status=RunStatus.COMPLETED)
    for key, name in (("c", run.pk), ("d", child.pk), ("e", child.thread_id)):
        kept = {"body_hash": "", "status": 201, "answer": SAID, "location": f"/api/v1/x/{name}"}
        IdempotencyKey.objects.create(owner=ann, key=key, **kept)
    # A guest's program may have used any name.
    IdempotencyKey.objects.create(owner=make_user("bob"), key="f", body_hash="", answer=answer)
    erase_thread(run.thread_id, by=ann)
    assert [row.key for row in IdempotencyKey.objects.order_by("key")] == ["b", "f"]


def test_memory_that_was_approved_stays_and_is_named(ann: User) -> None:
    run = talked(ann)
    agent = Agent.objects.get()
    edit = MemoryEditRequest.objects.create(
        agent=agent, run=run, path="knowledge/a.md", operation="write", proposed_content=SAID
    )
    MemoryRevision.objects.create(
        agent=agent, path="knowledge/a.md", number=1, operation="write", edit_request=edit
    )
    make_agent("others", sandbox=False)
    MemoryRevision.objects.create(
        agent=Agent.objects.get(slug="others"), path="secret/b.md", number=1, operation="write"
    )
    (child,) = delegated(run)
    Run.objects.update(status=RunStatus.COMPLETED)
    below = MemoryEditRequest.objects.create(
        agent=agent, run=child, path="knowledge/b.md", operation="write", proposed_content=SAID
    )
    MemoryRevision.objects.create(
        agent=agent, path="knowledge/b.md", number=1, operation="write", edit_request=below
    )
    assert remembered_from(run.thread_id) == [
        Stays("writer", "knowledge/a.md"),
        Stays("writer", "knowledge/b.md"),
    ]
    erase_thread(run.thread_id, by=ann)
    finish_erasures()
    assert not MemoryRevision.objects.filter(agent=agent, edit_request__isnull=False).exists()
    assert not MemoryEditRequest.objects.exists()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="needs SQLite")
def test_the_files_of_sqlite_no_longer_contain_it(ann: User) -> None:
    run = talked(ann)
    plant(run, said=SAID)
    ask_approval(talked(ann, "still there"))
    place = Path(connection.settings_dict["NAME"])
    files = [place, place.with_name(f"{place.name}-wal")]
    assert any(SAID.encode() in file.read_bytes() for file in files if file.exists())
    erase_thread(run.thread_id, by=ann)
    finish_erasures()
    assert not [file for file in files if file.exists() and SAID.encode() in file.read_bytes()]
