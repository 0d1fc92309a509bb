"""Writes in runs: tried, shown, approved, and made once if the effect is the same as shown."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test import Client
from django.urls import reverse

from agents.engine import crash_points
from agents.engine.crash_points import CrashPoint
from agents.engine.worker import Worker
from agents.features.databases.drivers import write
from agents.features.databases.models import DatabaseConnection
from agents.models import ApprovalRequest, Run, RunClock, ToolCall
from agents.review import as_text
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.approvals.grants import GrantTerms
from agents.services.approvals.request_review import review_of_request
from agents.services.errors import Conflict, InvalidRequest, ServiceError
from agents.services.runs.control import cancel_run
from sandbox.cancellation import Cancellation
from tests.support.hang import HANG
from tests.support.runs import (
    drive_to_end,
    fail_if_asked_again,
    make_agent,
    make_user,
    script_file,
    start_run,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

UPDATE = {"query": "UPDATE sales SET amount = amount + 1 WHERE id = :id", "params": {"id": 1}}


def call(**given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": "execute_sql", "input": given}]}


def begin(tmp_path: Path, *turns: dict[str, Any], writes: bool = True, **fields: Any) -> Run:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, amount INT, note TEXT)")
        database.execute("INSERT INTO sales VALUES (1, 42, 'a'), (2, 7, 'b')")
    row = DatabaseConnection.objects.create(
        name="shop", url=SecretText.seal(f"sqlite:///{tmp_path}/shop.db"), allow_writes=writes
    )
    user = make_user()
    model = script_file(tmp_path, [*turns, {"text": "Done."}])
    save_agent(make_agent(user, model=model, **fields), related={"databases": [row]})
    return start_run(user)


def rows(tmp_path: Path) -> list[Any]:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        return database.execute("SELECT id, amount FROM sales ORDER BY id").fetchall()


def change(tmp_path: Path, statement: str) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute(statement)


def pending(run: Run) -> ApprovalRequest:
    return ApprovalRequest.objects.get(run=run, status="pending")


def decide(request: ApprovalRequest, decision: str = "approve", **more: Any) -> None:
    user = User.objects.get(pk=request.run.owner_id)
    decide_approval(request.pk, DecisionRequest(decision, digest=request.digest, **more), by=user)


def results(run: Run) -> list[Any]:
    calls = ToolCall.objects.filter(run=run).order_by("turn", "position")
    return [call.result_content for call in calls]


def test_it_is_shown_then_approved_then_made_once(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    assert rows(tmp_path) == [(1, 42), (2, 7)]
    request = pending(run)
    assert request.allowed_decisions == ["approve", "reject"]
    [table] = request.preview["tables"]
    assert (table["before"], table["after"]) == ([["1", "42", "'a'"]], [["1", "43", "'a'"]])
    assert ToolCall.objects.get(run=run).effect == "external"
    text = as_text(review_of_request(request))
    assert "Change the database shop" in text
    assert "- id = 1, amount = 42, note = 'a'" in text
    assert "+ id = 1, amount = 43, note = 'a'" in text

    decide(request)
    run = drive_to_end(run)

    assert run.status == "completed"
    assert rows(tmp_path) == [(1, 43), (2, 7)]
    assert json.loads(results(run)[0]) == {
        "success": True, "rows_changed": 1, "tables": {"sales": {"updated": 1}},
    }  # fmt: skip
    assert "+ id = 1, amount = 43" in as_text(review_of_request(request))


def test_a_rejected_one_is_not_made(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    decide(pending(run), "reject", reason="no")
    run = drive_to_end(run)
    assert rows(tmp_path) == [(1, 42), (2, 7)]
    assert "rejected" in results(run)[0]


@pytest.mark.slow
def test_a_write_with_a_changed_result_is_shown_again(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    first = pending(run)
    change(tmp_path, "UPDATE sales SET amount = 1000 WHERE id = 1")
    decide(first)
    run = drive_to_end(run, until=("waiting",))
    first.refresh_from_db()
    assert first.status == "superseded"
    second = pending(run)
    assert second.digest != first.digest
    assert "changed since it was shown" in second.prompt
    assert second.preview["tables"][0]["after"] == [["1", "1001", "'a'"]]
    assert rows(tmp_path) == [(1, 1000), (2, 7)]
    decide(second)
    drive_to_end(run)
    assert rows(tmp_path) == [(1, 1001), (2, 7)]


def test_a_change_elsewhere_does_not_matter(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    change(tmp_path, "UPDATE sales SET amount = 1000 WHERE id = 2")
    decide(pending(run))
    drive_to_end(run)
    assert rows(tmp_path) == [(1, 43), (2, 1000)]


def test_an_approval_does_not_cover_another_database_of_the_same_name(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    (tmp_path / "other.db").write_bytes((tmp_path / "shop.db").read_bytes())
    DatabaseConnection.objects.update(url=SecretText.seal(f"sqlite:///{tmp_path}/other.db"))
    first = pending(run)
    decide(first)
    run = drive_to_end(run, until=("waiting",))
    first.refresh_from_db()
    assert first.status == "superseded"


def test_an_approved_write_still_runs_after_write_mode_is_removed(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    decide(pending(run))
    DatabaseConnection.objects.update(allow_writes=False)
    run = drive_to_end(run)
    assert "can only be read" in results(run)[0]
    assert rows(tmp_path) == [(1, 42), (2, 7)]


@pytest.mark.parametrize(
    "policy",
    [
        {"interrupt_on": {"execute_sql": False}},
        {"approval_rules": [{"tool": "*", "action": "allow"}]},
        {"approval_rules": [{"tool": "execute_sql", "action": "ask", "ask": {
            "allowed_decisions": ["edit", "respond"]}}]},
    ],
)  # fmt: skip
def test_no_policy_allows_a_write_without_asking(tmp_path: Path, policy: dict[str, Any]) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE), **policy), until=("waiting",))
    request = pending(run)
    assert set(request.allowed_decisions) <= {"approve", "reject"}
    if "approve" in request.allowed_decisions:
        with pytest.raises(InvalidRequest, match="cannot be allowed by a grant"):
            decide(request, always=GrantTerms(match="tool"))
    request.refresh_from_db()
    assert request.status == "pending"
    assert rows(tmp_path) == [(1, 42), (2, 7)]


def test_a_rule_denies_it(tmp_path: Path) -> None:
    rule = {"tool": "execute_sql", "action": "deny", "reason": "never"}
    run = drive_to_end(begin(tmp_path, call(**UPDATE), approval_rules=[rule]))
    assert "never" in results(run)[0]
    assert not ApprovalRequest.objects.exists()


def test_a_grant_for_reading_covers_no_write(tmp_path: Path) -> None:
    turns = [call(query="SELECT 1"), call(**UPDATE)]
    run = begin(tmp_path, *turns, interrupt_on={"execute_sql": True})
    run = drive_to_end(run, until=("waiting",))
    decide(pending(run), always=GrantTerms(match="tool"))
    run = drive_to_end(run, until=("waiting",))
    assert pending(run).preview is not None
    assert rows(tmp_path) == [(1, 42), (2, 7)]


def test_a_person_cannot_turn_a_query_into_a_write(tmp_path: Path) -> None:
    run = begin(tmp_path, call(query="SELECT 1"), interrupt_on={"execute_sql": True})
    run = drive_to_end(run, until=("waiting",))
    # `decide` skips the check of the doors: the driver refuses the edit itself.
    decide(pending(run), "edit", input=UPDATE)
    run = drive_to_end(run)
    assert "cannot turn a call into one that writes" in results(run)[0]
    assert rows(tmp_path) == [(1, 42), (2, 7)]


def test_a_write_without_a_trial_ends_without_asking(tmp_path: Path) -> None:
    queries = [
        "UPDATE sales SET nope = 1",
        "UPDATE sales SET amount = 1 WHERE id = 99",
        "UPDATE sales SET amount = 1; DELETE FROM sales",
    ]
    run = drive_to_end(begin(tmp_path, *[call(query=query) for query in queries]))
    said = results(run)
    assert "no such column" in said[0]
    assert "No row matches" in said[1]
    assert "one statement at a time" in said[2]
    assert rows(tmp_path) == [(1, 42), (2, 7)]
    statuses = ToolCall.objects.filter(run=run).values_list("status", flat=True)
    assert set(statuses) == {"invalid"}
    assert not ApprovalRequest.objects.exists()


class Crashed(BaseException):
    """Simulates the death of the process: no code catches it or cleans up."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "amount"), [(CrashPoint.STARTED_WRITTEN, 42), (CrashPoint.TOOL_DONE, 43)]
)
def test_a_driver_that_dies_makes_it_never_twice(
    tmp_path: Path, point: CrashPoint, amount: int
) -> None:
    """A crash between the journal and the write, or between the write and the journal."""
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    decide(pending(run))
    seen: list[CrashPoint] = []

    def hook(reached: CrashPoint) -> None:
        if reached == point:
            seen.append(point)
            raise Crashed

    def crashed() -> bool:
        fail_if_asked_again(run)
        return bool(seen) and not running.running

    crash_points.crash_at(hook)
    try:
        running = Worker()
        running.start()
        running.submit(run.id)
        wait_until(crashed, f"crash at {point}")
        running.stop()
    finally:
        crash_points.crash_at(None)
    RunClock.objects.filter(run=run).update(lease_until=F("lease_until") - 3600)

    run = drive_to_end(run)

    assert run.status == "completed"
    [made] = ToolCall.objects.filter(run=run)
    assert (made.status, made.code) == ("interrupted", "interrupted")
    assert "may have happened" in str(made.result_content)
    assert rows(tmp_path) == [(1, amount), (2, 7)]


def test_cancelling_after_the_commit_does_not_say_that_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    decide(pending(run))
    original, go_on = write.write_sql, threading.Event()

    def slow(*arguments: Any) -> Any:
        changes = original(*arguments)
        cancel_run(run.pk, by="ada")
        connection.close()
        assert go_on.wait(HANG)
        return changes

    class Waking(Cancellation):
        def cancel(self) -> None:
            super().cancel()
            go_on.set()

    monkeypatch.setattr(write, "write_sql", slow)
    # The package has only a lazy reference to the module.
    writes = import_module("agents.features.databases.middleware.writes")
    monkeypatch.setattr(writes, "Cancellation", Waking)
    run = drive_to_end(run)
    assert run.status == "cancelled"
    assert rows(tmp_path) == [(1, 43), (2, 7)]
    [made] = ToolCall.objects.filter(run=run)
    assert made.status == "succeeded"
    assert json.loads(str(made.result_content))["rows_changed"] == 1


def test_without_write_mode_a_write_meets_a_file_that_can_only_be_read(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE), writes=False))
    assert "not authorized" in results(run)[0]
    assert ToolCall.objects.get(run=run).effect == "read"
    assert rows(tmp_path) == [(1, 42), (2, 7)]


@pytest.mark.slow
def test_a_second_write_of_the_turn_is_judged_after_the_first(tmp_path: Path) -> None:
    both = [{"name": "execute_sql", "input": UPDATE}, {"name": "execute_sql", "input": UPDATE}]
    run = drive_to_end(begin(tmp_path, {"tool_calls": both}), until=("waiting",))
    for request in ApprovalRequest.objects.filter(status="pending"):
        decide(request)
    run = drive_to_end(run, until=("waiting",))
    assert rows(tmp_path) == [(1, 43), (2, 7)]
    assert pending(run).preview["tables"][0]["after"] == [["1", "44", "'a'"]]


@pytest.mark.both_databases
def test_two_concurrent_approvals_make_one_write(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    request = pending(run)
    barrier, said = threading.Barrier(2), []

    def approve() -> None:
        barrier.wait()
        try:
            decide(request)
            said.append("approved")
        except Conflict:
            said.append("stale")
        finally:
            connection.close()

    threads = [threading.Thread(target=approve) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["approved", "stale"]
    drive_to_end(run)
    assert rows(tmp_path) == [(1, 43), (2, 7)]


def test_approving_one_statement_approves_no_other(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    request = pending(run)
    decide(request)
    # Simulate an attacker with write access to the journal, or a mix-up of rows.
    other = {"query": "DELETE FROM sales"}
    ToolCall.objects.filter(run=run).update(input=json.dumps(other))
    run = drive_to_end(run, until=("waiting",))
    assert rows(tmp_path) == [(1, 42), (2, 7)]
    assert pending(run).preview["rows_changed"] == 2


def test_a_stale_digest_decides_nothing(tmp_path: Path) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    request = pending(run)
    user = User.objects.get(pk=run.owner_id)
    with pytest.raises(ServiceError):
        decide_approval(request.pk, DecisionRequest("approve", digest="0" * 64), by=user)
    assert rows(tmp_path) == [(1, 42), (2, 7)]


def test_doors_show_the_rows(tmp_path: Path, client: Client) -> None:
    run = drive_to_end(begin(tmp_path, call(**UPDATE)), until=("waiting",))
    request = pending(run)
    client.force_login(User.objects.get(pk=run.owner_id))
    page = client.get(reverse("web:approval", args=[request.pk])).content.decode()
    assert "Change the database shop" in page
    assert "What it changes" in page
    assert "amount = " in page
    shown = client.get(f"/api/v1/approvals/{request.pk}").json()
    assert shown["changes"]["tables"][0]["after"] == [["1", "43", "'a'"]]
    stranger = make_user("eve")
    client.force_login(stranger)
    assert client.get(reverse("web:approval", args=[request.pk])).status_code == 404
    assert client.get(f"/api/v1/approvals/{request.pk}").status_code == 404


def test_no_value_can_pass_for_another(tmp_path: Path) -> None:
    """The text of a row stays in its quotes and on its line, and hides no other text."""
    evil = "x', amount = 43, note = 'fine\n+ id = 9\u202e"
    query = {"query": "UPDATE sales SET note = :note WHERE id = 1", "params": {"note": evil}}
    run = drive_to_end(begin(tmp_path, call(**query)), until=("waiting",))
    text = as_text(review_of_request(pending(run)))
    [line] = [line for line in text.splitlines() if line.startswith("+ id")]
    assert "note = 'x'', amount = 43, note = ''fine⟨U+000A⟩+ id = 9⟨U+202E⟩'" in line
