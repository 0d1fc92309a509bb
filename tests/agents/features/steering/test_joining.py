"""A waiting message joins the run in progress: stored once, in order, between two turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.test import override_settings

from agents.engine.crash_points import CrashPoint
from agents.engine.joining import _write
from agents.features.forks.history import copy_history
from agents.features.steering.actions import (
    REASON,
    can_join,
    forget,
    messages_to_join,
    send_now,
)
from agents.features.steering.middleware import MIDDLEWARE
from agents.features.steering.models import SteeringRequest
from agents.kernel.lease import FenceLost
from agents.kernel.middleware import Join, LoadContext
from agents.models import Agent, AuditEntry, Message, Run, Thread
from agents.models.message import PERSON
from agents.selectors.attention import attention_for, own_runs
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict
from agents.services.files.uploads import create_run_with
from agents.services.runs.control import cancel_run, resume_run
from agents.services.runs.start import RunRequest
from agents.spec import AgentSpec
from tests.agents.engine.by_hand import at_once, claimed, committed, let_lease_expire
from tests.agents.engine.test_recovery import crash_once
from tests.support import guards
from tests.support.messages_api import MessagesServer
from tests.support.messages_prefix import assert_prefix_stable
from tests.support.messages_script import Fault, Request, ToolUse, Turn, by_reply
from tests.support.pictures import png
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    start_run,
)

pytestmark = pytest.mark.django_db(transaction=True)

LOOK = Turn(text="I look.", tool_uses=[ToolUse("ls", {"path": "/"})])
WRITE = Turn(tool_uses=[ToolUse("write_file", {"path": "/a", "content": "x"})])
DONE = Turn(text="Done.")


@contextmanager
def served(turns: Sequence[Turn], **vel: Any) -> Iterator[MessagesServer]:
    with MessagesServer(by_reply(turns)) as server:
        values = {
            **settings.VEL,
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "test-key",
            "RETRY_BASE_SECONDS": 0.01,
            **vel,
        }
        with override_settings(VEL=values):
            yield server


def a_user(**fields: Any) -> User:
    user = make_user()
    make_agent(user, provider="anthropic", model="small", **fields)
    return user


def queued(user: User, message: str = "Look at /b too", **fields: Any) -> Run:
    return start_run(user, message, key="s", queue=True, **{"source": "web", **fields})


def texts(request: Request) -> list[str]:
    """Return the texts of the people's messages in a request."""
    return [
        block["text"]
        for message in request.messages
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "text"
    ]


def status(run: Run) -> str:
    return Run.objects.get(pk=run.pk).status


def test_a_message_joins_between_two_turns_and_is_stored_once() -> None:
    user = a_user()
    run, waiting = queued(user, "Look around"), queued(user)
    with served([LOOK, DONE, DONE]) as server:
        assert send_now(waiting, by=user) == run
        assert send_now(waiting, by=user) == run
        run = drive_to_end(run)
        third = drive_to_end(queued(user, "And now?"))
    assert (run.status, third.status) == ("completed", "completed")
    assert server.violations == []
    first, second, later = server.requests
    assert_prefix_stable([first, second, later])
    last = second.messages[-1]["content"]
    assert [block["type"] for block in last] == ["tool_result", "text"]
    assert texts(second) == ["Look around", "Look at /b too"]
    assert texts(later) == ["Look around", "Look at /b too", "And now?"]
    (joined,) = events(run, "message.joined")
    assert (joined["step"], joined["waiting_run_id"]) == (1, waiting.pk)
    assert (joined["by"], joined["text"], joined["files"]) == ("ada", "Look at /b too", [])
    seqs = [event["seq"] for event in events(run)]
    assert seqs == list(range(1, len(seqs) + 1))
    row = Message.objects.get(run=run, turn=1, position=1)
    assert (row.role, row.author) == ("user", PERSON)
    waiting.refresh_from_db()
    assert (waiting.status, waiting.started_at) == ("cancelled", None)
    (cancelled,) = events(waiting, "run.cancelled")
    assert cancelled["reason"] == f"its message was added to the run {run.pk}"
    assert not SteeringRequest.objects.exists()
    assert AuditEntry.objects.filter(action="run.message_sent").count() == 1


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("point", "after", "requests"),
    [
        (CrashPoint.REPLY_WRITTEN, 0, 2),
        (CrashPoint.RESULTS_WRITTEN, 0, 2),
        (CrashPoint.JOINED, 0, 2),
        (CrashPoint.REPLIED, 1, 3),
    ],
)
def test_a_crash_neither_loses_nor_repeats_it(point: CrashPoint, after: int, requests: int) -> None:
    user = a_user()
    run, waiting = queued(user, "Look around"), queued(user)
    send_now(waiting, by=user)
    with served([LOOK, DONE]) as server:
        crash_once(run, point, after=after)
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert len(server.requests) == requests
    assert_prefix_stable(server.requests)
    assert texts(server.requests[-1]) == ["Look around", "Look at /b too"]
    if requests == 3:
        # The history from the rows has the same bytes as the one in memory.
        assert server.requests[1].body == server.requests[2].body
    assert event_types(run).count("message.joined") == 1
    assert status(waiting) == "cancelled"
    seqs = [event["seq"] for event in events(run)]
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.parametrize("end", ["completed", "limit_turns", "cancelled"])
def test_a_message_starts_its_own_run_if_the_run_ends_first(end: str) -> None:
    limit = {"max_turns": 1} if end == "limit_turns" else {}
    user = a_user(**limit)
    run, waiting = queued(user, "Look around"), queued(user)
    send_now(waiting, by=user)
    with served([DONE if end == "completed" else LOOK, DONE]):
        if end == "cancelled":
            cancel_run(run.pk, by="ada")
        else:
            run = drive_to_end(run)
    run.refresh_from_db()
    assert end in (run.status, run.error_code)
    assert events(run, "message.joined") == []
    assert status(waiting) == "queued"


@pytest.mark.both_databases
@pytest.mark.parametrize("other", ["remove", "cancel", "send", "queue", "lose"])
def test_a_message_joins_completely_or_not_at_all(other: str) -> None:
    user = make_user()
    make_agent(user)
    run, waiting = queued(user, "Look around"), queued(user)
    send_now(waiting, by=user)
    writer = claimed(run)
    join = Join([waiting.pk], "ada", partial(forget, run.pk, waiting.number))
    actions = {
        "remove": lambda: cancel_run(waiting.pk, by="ada"),
        "cancel": lambda: cancel_run(run.pk, by="ada"),
        "send": lambda: send_now(waiting, by=user),
        "queue": lambda: queued(user, "Another"),
        "lose": lambda: let_lease_expire(run),
    }
    answers = at_once(lambda: committed(_write, writer, 1, join), actions[other])
    fits = (FenceLost, Conflict)
    assert all(isinstance(each, fits) for each in answers if isinstance(each, Exception)), answers
    waiting.refresh_from_db()
    has_joined = bool(events(run, "message.joined"))
    assert Message.objects.filter(run=run, turn=1).exists() is has_joined
    expected = "cancelled" if has_joined or other == "remove" else "pending"
    assert waiting.status == expected
    assert waiting.message_refused is (expected == "cancelled")
    assert len(events(waiting, "run.cancelled")) == (expected == "cancelled")


def test_no_model_receives_a_removed_message() -> None:
    user = a_user()
    run, waiting = queued(user, "Look around"), queued(user)
    send_now(waiting, by=user)
    cancel_run(waiting.pk, by="ada")
    with served([LOOK, DONE, DONE]) as server:
        assert drive_to_end(run).status == "completed"
        assert drive_to_end(queued(user, "And now?")).status == "completed"
    assert texts(server.requests[-1]) == ["Look around", "And now?"]
    assert not SteeringRequest.objects.exists()


def test_messages_join_in_their_order_and_only_those_that_were_sent() -> None:
    user = a_user()
    run, first, second, third = (queued(user, word) for word in ("zero", "one", "two", "three"))
    send_now(first, by=user)
    with pytest.raises(Conflict, match="not the next message"):
        send_now(third, by=user)
    send_now(second, by=user)
    with served([LOOK, DONE]) as server:
        assert drive_to_end(run).status == "completed"
    assert texts(server.requests[-1]) == ["zero", "one", "two"]
    assert [event["text"] for event in events(run, "message.joined")] == ["one", "two"]
    assert status(third) == "queued"


def test_a_message_waits_for_the_decision_of_a_pending_request() -> None:
    user = a_user(interrupt_on={"write_file": True})
    run, waiting = queued(user, "Write"), queued(user)
    with served([WRITE, DONE]) as server:
        run = drive_to_end(run, until=("waiting",))
        request = run.approvals.get(status="pending")
        assert send_now(waiting, by=user) == run
        assert (status(run), status(waiting)) == ("waiting", "pending")
        decide_approval(request.pk, DecisionRequest("approve", request.digest), by=user)
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert run.approvals.count() == 1
    assert_prefix_stable(server.requests)
    last = server.requests[-1].messages[-1]["content"]
    assert [block["type"] for block in last] == ["tool_result", "text"]


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "webhook"},
        {"source": "mcp"},
        {"source": "schedule", "trigger": "01k00000000000000000000000"},
        {"output_schema": {"type": "object", "properties": {}}},
    ],
)
def test_a_message_that_needs_its_own_run_ends_the_work(fields: dict[str, Any]) -> None:
    user = a_user()
    run, waiting = queued(user, "Look around"), queued(user, **fields)
    assert send_now(waiting, by=user) is None
    assert (status(run), status(waiting)) == ("cancelled", "queued")
    assert events(run, "run.cancelled")[0]["reason"] == REASON


def test_the_answer_keeps_the_schema_of_the_run() -> None:
    user = a_user()
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    run, waiting = queued(user, "Count", output_schema=schema), queued(user)
    assert can_join(waiting, run)
    assert can_join(queued(user, output_schema=schema), run)
    assert not can_join(run, waiting)


def test_runs_of_subagents_are_not_watched() -> None:
    (middleware,) = MIDDLEWARE
    assert middleware.load(LoadContext(Run(), AgentSpec.model_construct(), 0)) is not None
    child = Run(parent_id="01k00000000000000000000000")
    assert middleware.load(LoadContext(child, AgentSpec.model_construct(), 0)) is None


def test_a_message_for_a_newer_version_of_the_agent_ends_the_work() -> None:
    user = a_user()
    run = queued(user, "Look around")
    agent = Agent.objects.get()
    agent.max_turns = 7
    save_agent(agent)
    waiting = queued(user)
    assert send_now(waiting, by=user) is None
    assert (status(run), status(waiting)) == ("cancelled", "queued")


def test_a_message_of_another_program_never_joins_behind_one_of_the_owner() -> None:
    user = a_user()
    run, first, foreign = queued(user, "a"), queued(user, "b"), queued(user, "c", source="webhook")
    send_now(first, by=user)
    # Not even if the request is about it.
    SteeringRequest.objects.update(until=foreign.number)
    assert [pk for pk, _ in messages_to_join(run, foreign.number)] == [first.pk]
    with served([LOOK, DONE]) as server:
        drive_to_end(run)
    assert texts(server.requests[-1]) == ["a", "b"]
    assert status(foreign) == "queued"


def test_a_message_that_a_guardrail_blocks_does_not_join() -> None:
    with guards.registered(("NoWord",)), served([LOOK, DONE]) as server:
        user = a_user(guardrails=["no-word"])
        run, waiting = queued(user, "Look around"), queued(user, f"The word is {guards.WORD}")
        send_now(waiting, by=user)
        assert drive_to_end(run).status == "cancelled"
        assert drive_to_end(waiting).error_code == "guardrail_input"
    assert guards.WORD not in json.dumps([request.json for request in server.requests])


def test_files_of_a_message_join_with_it() -> None:
    user = a_user()
    run = queued(user, "Look around")
    files = [ContentFile(b"one,two", name="data.csv"), ContentFile(png(4, 4), name="dot.png")]
    request = RunRequest(agent="tester", message="See", key="s", queue=True, source="web")
    waiting = create_run_with(request, files, owner=user).run
    send_now(waiting, by=user)
    with served([LOOK, DONE], IMAGE_MODELS=("small",)) as server:
        crash_once(run, CrashPoint.REPLIED, after=1)
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert server.requests[1].body == server.requests[2].body
    content = server.requests[2].messages[-1]["content"]
    assert [block["type"] for block in content] == [
        "tool_result", "text", "text", "text", "image",
    ]  # fmt: skip
    assert content[1]["text"] == "See"
    assert "data.csv" in content[2]["text"]
    assert content[4]["source"]["type"] == "base64"
    (joined,) = events(run, "message.joined")
    assert [path.rsplit("/", 1)[-1] for path in joined["files"]] == ["data.csv", "dot.png"]


def test_a_fork_has_the_message_from_the_step_that_it_follows() -> None:
    user = a_user()
    run, waiting = queued(user, "Look around"), queued(user)
    send_now(waiting, by=user)
    with served([LOOK, LOOK, DONE]):
        run = drive_to_end(run)
    for step, expected in ((0, 0), (1, 1), (2, 1)):
        thread = Thread.objects.create(agent=run.thread.agent, owner=user)
        copy_history(run, step, thread, uploads=False)
        assert Message.objects.filter(run__thread=thread, author=PERSON, turn=1).count() == expected
        assert Run.objects.filter(thread=thread).count() == 1


def test_a_failed_run_with_a_joined_message_can_be_resumed_and_is_listed() -> None:
    user = a_user()
    run, waiting = queued(user, "Look around"), queued(user)
    send_now(waiting, by=user)
    turns = [LOOK, Turn(fault=Fault("status", 400)), DONE]
    with served(turns):
        run = drive_to_end(run)
    assert run.status == "failed"
    assert [each.pk for each in own_runs(user)] == [run.pk]
    assert [each.pk for each in attention_for(user).failed] == [run.pk]
    resume_run(run.pk)
    with served([LOOK, DONE]) as server:
        assert drive_to_end(run).status == "completed"
    assert texts(server.requests[-1]) == ["Look around", "Look at /b too"]
