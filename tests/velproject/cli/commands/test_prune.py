"""`vel prune` first reports its effects, and removes only the selected data."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from agents.doors.cli.errors import CliError
from agents.models import AuditEntry, IdempotencyKey, Run, Thread
from agents.states import RunStatus
from memory.models import MemoryEditRequest, MemoryRevision
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.agents.services.erasure.test_actions import delegated, talked
from tests.velproject.in_process import call
from velproject.cli.commands.prune import prune

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> User:
    make_agent(sandbox=False)
    return make_user("ann")


def pruned(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    """Return the exit code, the JSON output and the messages on standard error."""
    capsys.readouterr()
    code = call("prune", "--json", *words)
    told = capsys.readouterr()
    return code, json.loads(told.out), told.err


def aged(run: Run, days: int) -> str:
    then = timezone.now() - timedelta(days=days)
    Thread.objects.filter(pk=run.thread_id).update(created_at=then)
    Run.objects.filter(pk=run.pk).update(ended_at=then)
    return str(run.thread_id)


def there() -> set[str]:
    return set(Thread.every.values_list("pk", flat=True))


def test_it_shows_the_changes_before_it_makes_them(
    ann: User, capsys: pytest.CaptureFixture[str]
) -> None:
    old, young = aged(talked(ann), 91), aged(talked(ann), 89)
    assert pruned(capsys)[1] == {"would_remove": {}}  # the settings keep threads forever
    assert pruned(capsys, "--apply")[1] == {"removed": {}}
    assert pruned(capsys, "--older-than", "90d")[1] == {"would_remove": {"run": 1, "thread": 1}}
    assert there() == {old, young}
    code, done, _ = pruned(capsys, "--older-than", "90", "--apply")
    assert (code, done["removed"]["thread"]) == (0, 1)
    assert there() == {young}


def test_only_the_named_thread_is_erased(ann: User, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = talked(ann), aged(talked(ann), 400)
    (child,) = delegated(one)
    Run.objects.update(status=RunStatus.COMPLETED)
    agent = one.agent_version.agent
    edit = MemoryEditRequest.objects.create(
        agent=agent, run=one, path="knowledge/a\x1b[2J.md", operation="write"
    )
    MemoryRevision.objects.create(
        agent=agent, path=edit.path, number=1, operation="write", edit_request=edit
    )
    with pytest.raises(CliError, match="no thread"):  # removed only with its parent's
        pruned(capsys, "--thread", child.thread_id)
    given = ("--thread", one.thread_id)
    assert pruned(capsys, *given)[1] == {"would_remove": {"run": 2, "thread": 1}}
    assert len(there()) == 3
    code, done, said = pruned(capsys, *given, "--apply")
    assert (code, done["removed"]["thread"], done["removed"]["run"]) == (0, 2, 2)
    assert there() == {other}
    assert "memory of writer that was changed from there stays" in said
    assert "\x1b" not in said
    assert AuditEntry.objects.get(action="thread.erased").note == "asked for"
    with pytest.raises(CliError, match="no thread"):
        pruned(capsys, *given, "--apply")


def test_all_threads_of_a_user_except_active_ones_are_erased(
    ann: User, capsys: pytest.CaptureFixture[str]
) -> None:
    bob = make_user("bob")
    done, busy, others = talked(ann), make_run(ann), talked(bob)
    for owner in (ann, bob):
        IdempotencyKey.objects.create(owner=owner, key="a", body_hash="", answer="{}")
    about = {"status": 201, "answer": "{}", "location": f"/api/v1/runs/{done.pk}"}
    IdempotencyKey.objects.create(owner=ann, key="b", body_hash="", **about)
    expected = {"idempotencykey": 2, "run": 1, "thread": 1}
    code, told, said = pruned(capsys, "--user", "ann")
    assert (code, told) == (1, {"would_remove": expected})
    assert f"thread {busy.thread_id} was not removed" in said
    given = ("--thread", done.thread_id, "--thread", busy.thread_id)
    assert pruned(capsys, *given)[1] == {"would_remove": {**expected, "idempotencykey": 1}}
    code, told, said = pruned(capsys, "--user", "ann", "--apply")
    assert code == 1
    assert {name: told["removed"][name] for name in expected} == expected
    assert f"thread {busy.thread_id} was not removed" in said
    assert there() == {busy.thread_id, others.thread_id}
    assert done.thread_id not in there()
    assert [row.owner for row in IdempotencyKey.objects.all()] == [bob]
    with pytest.raises(CliError, match="no user"):
        pruned(capsys, "--user", "ann\x1b")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="needs SQLite")
def test_the_file_becomes_smaller(ann: User, capsys: pytest.CaptureFixture[str]) -> None:
    def pages() -> int:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA page_count")
            return int(cursor.fetchone()[0])

    run = talked(ann, "long " * 200_000)
    full = pages()
    pruned(capsys, "--thread", run.thread_id, "--apply")
    assert pages() >= full
    pruned(capsys, "--apply", "--vacuum")
    assert pages() < full / 2


@pytest.mark.parametrize(
    "given",
    [
        ["--older-than", "90d", "--thread", "x"],
        ["--older-than", "90d", "--user", "ann"],
        ["--vacuum"],
        ["--older-than", "0"],
        ["--older-than", "-1"],
        ["--older-than", "36501d"],
        ["--older-than", "90h"],
        ["--older-than", "9" * 30],
    ],
)
def test_invalid_arguments_change_nothing(given: list[str]) -> None:
    done = CliRunner().invoke(prune, given)
    assert done.exit_code == 2
    assert "Usage:" in done.output
