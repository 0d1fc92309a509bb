"""The transcript has messages and tool calls in order, in limited pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.doors.rest.pagination import write_cursor
from agents.events.append import dump
from agents.models import Effect, Message, MessageRole, Run, ToolCall
from agents.selectors import conversation
from agents.states import ToolCallStatus
from tests.agents.api.rows import client_for, make_agent, make_run, make_user, problem_of

pytestmark = pytest.mark.django_db


def say(run: Run, turn: int, *blocks: dict[str, Any], role: str = MessageRole.ASSISTANT) -> None:
    position = Message.objects.filter(run=run, turn=turn).count()
    content = dump(list(blocks))
    Message.objects.create(run=run, turn=turn, position=position, role=role, content=content)


def call(run: Run, turn: int, call_id: str = "", result: Any = "ok", **fields: Any) -> ToolCall:
    values = {
        "position": run.tool_calls.filter(turn=turn).count(),
        "call_id": call_id or f"call_{turn}",
        "tool": "ls",
        "input": dump({"path": "/"}),
        "effect": Effect.READ,
        "status": ToolCallStatus.SUCCEEDED,
        "result": dump(result) if result is not None else "",
    }
    return ToolCall.objects.create(run=run, turn=turn, **{**values, **fields})


@pytest.fixture
def run() -> Run:
    make_agent()
    return make_run(make_user("ann"), message="Look")


def ann() -> Any:
    return client_for(User.objects.get(username="ann"))


def get(run: Run, part: str, query: str = "") -> Any:
    return ann().get(f"/api/v1/runs/{run.id}/{part}{query}")


def test_messages_results_and_notes_come_in_the_order_of_the_conversation(run: Run) -> None:
    say(run, 1, {"type": "thinking", "thinking": "Hm", "signature": "secret"}, text("One"))
    call(run, 1, "a")
    call(run, 1, "b", None, status=ToolCallStatus.WAITING)
    say(run, 1, text("A note"), role=MessageRole.USER)
    say(run, 2, {"type": "redacted_thinking", "data": "secret"}, text("Two"))
    page = get(run, "transcript").json()
    assert page["next_cursor"] is None
    shown = [(message["turn"], message["role"]) for message in page["results"]]
    assert shown == [(0, "user"), (1, "assistant"), (1, "tool"), (1, "user"), (2, "assistant")]
    results = page["results"][2]["content"]
    assert [block["tool_use_id"] for block in results] == ["a", "b"]
    assert [(block["status"], block["content"]) for block in results] == [
        ("succeeded", "ok"),
        ("waiting", None),
    ]
    assert "secret" not in json.dumps(page)
    assert page["results"][1]["content"][0] == {"type": "thinking", "thinking": "Hm"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


@pytest.mark.slow
@pytest.mark.both_databases
def test_pages_have_complete_turns_and_a_limited_size(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for turn in range(1, 6):
        say(run, turn, text(f"turn {turn}"))
        call(run, turn)
    monkeypatch.setattr(conversation, "PAGE_BYTES", 100)
    seen, query = [], "?limit=3"
    while True:
        page = get(run, "transcript", query).json()
        turns = [message["turn"] for message in page["results"]]
        assert 0 < len(set(turns)) <= 3
        seen += turns
        if page["next_cursor"] is None:
            break
        query = f"?limit=3&cursor={page['next_cursor']}"
    assert seen == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    # The byte limit ends a page before the turn limit. A turn above the byte limit is a page.
    say(run, 6, text("x" * 200))
    call(run, 6)
    sizes, query = [], "?limit=200"
    while True:
        page = get(run, "transcript", query).json()
        sizes.append(len({message["turn"] for message in page["results"]}))
        if page["next_cursor"] is None:
            break
        query = f"?limit=200&cursor={page['next_cursor']}"
    assert sum(sizes) == 7
    assert max(sizes) <= 3
    assert sizes[-1] == 1


@pytest.mark.both_databases
def test_results_of_calls_end_a_page_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(1, 6):
        say(run, turn, text(f"turn {turn}"))
        call(run, turn, "", "x" * 600)
    monkeypatch.setattr(conversation, "PAGE_BYTES", 1_500)
    assert pages(run, "transcript", "turn") == [[0, 1, 1, 2, 2], [3, 3, 4, 4], [5, 5]]


@pytest.mark.both_databases
def test_long_calls_come_in_shorter_pages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(1, 6):
        call(run, turn, "", "x" * 600, input=dump({"path": "y" * 100}))
    call(run, 6, "", "x" * 2_000)
    monkeypatch.setattr("agents.doors.rest.pagination.PAGE_BYTES", 1_500)
    assert pages(run, "tool-calls", "turn") == [[1, 2], [3, 4], [5], [6]]


def pages(run: Run, part: str, column: str) -> list[list[Any]]:
    seen, query = [], "?limit=200"
    while True:
        page = get(run, part, query).json()
        seen.append([row[column] for row in page["results"]])
        if page["next_cursor"] is None:
            return seen
        query = f"?limit=200&cursor={page['next_cursor']}"


@pytest.mark.both_databases
def test_a_thread_is_read_through_all_its_runs(run: Run) -> None:
    say(run, 1, text("First answer"))
    Run.objects.filter(pk=run.pk).update(status="completed")
    later = make_run(run.owner, thread=run.thread_id, message="And now?")
    url = f"/api/v1/threads/{run.thread_id}/transcript"
    first = ann().get(f"{url}?limit=2").json()
    rest = ann().get(f"{url}?limit=2&cursor={first['next_cursor']}").json()
    places = [(message["run"], message["turn"]) for message in first["results"] + rest["results"]]
    assert places == [(run.id, 0), (run.id, 1), (later.id, 0)]


@pytest.mark.slow
@pytest.mark.both_databases
def test_calls_are_cut_in_lists_and_complete_alone(run: Run) -> None:
    long = "x" * 50_000
    call(run, 1, "big", long, input=dump({"path": long}), edited_input=dump({"path": "b"}))
    call(run, 2, "bad", [text(long)], tool="cat", status=ToolCallStatus.FAILED, is_error=True)
    (first, second) = get(run, "tool-calls").json()["results"]
    assert len(first["result"]) < 5_000
    assert "bytes cut" in first["result"]
    assert len(second["result"][0]["text"]) < 5_000
    whole = get(run, "tool-calls/big").json()
    assert (whole["result"], whole["input"]) == (long, {"path": long})
    assert whole["edited_input"] == {"path": "b"}
    call(run, 3, "vast", "y" * 2_000_000)
    assert len(get(run, "tool-calls/vast").content) < 1_100_000


@pytest.mark.slow
@pytest.mark.both_databases
def test_calls_are_found_by_tool_status_turn_and_id(run: Run) -> None:
    call(run, 1, "same")
    call(run, 2, "same", tool="cat", status=ToolCallStatus.FAILED)
    for query in ("tool=cat", "status=failed", "turn=2"):
        (found,) = get(run, "tool-calls", f"?{query}").json()["results"]
        assert found["turn"] == 2
    turns = [row["turn"] for row in get(run, "tool-calls", "?ordering=-turn").json()["results"]]
    assert turns == [2, 1]
    assert get(run, "tool-calls/same").json()["turn"] == 2
    assert get(run, "tool-calls/same", "?turn=1").json()["turn"] == 1
    missing = get(run, "tool-calls/none")
    assert (missing.status_code, problem_of(missing)["code"]) == (404, "unknown_call")
    assert get(run, "tool-calls/same", "?turn=x").status_code == 400


@pytest.mark.parametrize("call_id", ["a b", "ü", "a%00b", "..", "%0a", "a%2Fb", "x" * 201])
def test_an_id_may_be_anything(run: Run, call_id: str) -> None:
    assert get(run, f"tool-calls/{call_id}").status_code == 404


def test_a_picture_is_listed_without_its_bytes(run: Run) -> None:
    image = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    call(run, 1, "pic", [{"type": "image", "source": image}])
    (block,) = get(run, "tool-calls/pic").json()["result"]
    assert block["source"] == {"type": "base64", "media_type": "image/png", "bytes": 3}


def test_a_transcript_contains_only_its_run(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(status="completed")
    make_run(run.owner, thread=run.thread_id, message="And now?")
    shown = get(run, "transcript").json()["results"]
    assert {message["run"] for message in shown} == {run.id}


def test_a_cursor_of_the_transcript_has_numbers(run: Run) -> None:
    for place in (("x", "y"), ("1", "0"), (1,), (1, True)):
        cursor = write_cursor("transcript", *place)
        response = get(run, "transcript", f"?cursor={cursor}")
        assert (response.status_code, problem_of(response)["code"]) == (400, "invalid"), place


def test_the_input_of_a_complete_call_is_limited_too(run: Run) -> None:
    long = "y" * 2_000_000
    call(run, 1, "vast", input=dump({"path": long}), edited_input=dump({"path": long}))
    assert len(get(run, "tool-calls/vast").content) < 2_100_000
