"""An export has the whole conversation, for its owner only, at a limited cost."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import jsonschema
import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.api.schema_document import api_document
from agents.events.append import dump
from agents.features.conversation_export import downloads, reading
from agents.features.conversation_export.reading import Conversation
from agents.models import ApprovalRequest, Message, Run, RunClock, Thread, ToolCall, Upload
from agents.services.errors import NotFound
from tests.agents.api.rows import ask_approval, client_for, make_user, problem_of
from tests.agents.features.conversation_export.rows import (
    as_json,
    body_of,
    call,
    decide,
    exported,
    reply,
)
from tests.support import runs
from tests.support.subagents import delegate

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = runs.make_user()
    runs.make_agent(user, name="Weather")
    return user


@pytest.fixture
def run(ada: User) -> Run:
    """A run with a call that a person approved, and an answer."""
    made = runs.start_run(ada, "When does it rain?")
    thoughts = {"type": "thinking", "thinking": "Hm.", "signature": "s3cr3t"}
    reply(made, 1, thoughts, "Let me look.")
    decide(call(made, 1, {"command": "cat rain.csv"}, "June,37"), make_user("grace"), reason="Fine")
    reply(made, 2, "It rains in **June**.", input_tokens=7, cost_microusd=1_500)
    Run.objects.filter(pk=made.pk).update(status="completed")
    RunClock.objects.filter(run=made).update(turn=2, input_tokens=7, cost_microusd=1_500)
    return made


def browser(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


def test_markdown_has_message_steps_decisions_answer_and_costs(run: Run) -> None:
    text = exported(run)
    assert text.startswith("# When does it rain?\n\n- Agent: Weather\n- Person: ada\n")
    order = (
        "- Usage with subagents: 7 tokens, $0.0015",
        "## Message 1\n",
        "> When does it rain?",
        "The agent:\n\n> Let me look.",
        "<details><summary>Step 1: <code>execute</code> <code>cat rain.csv</code>, succeeded",
        '"command": "cat rain.csv"',
        "```text\nJune,37\n```\n\n</details>",
        "**Decision:** Approved by grace, 20",
        "Reason: Fine",
        "### Answer\n\n> It rains in **June**.",
        "Completed, 2 steps, 7 tokens, $0.0015.",
        "*End of the conversation.*\n",
    )
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "Hm." not in text  # thoughts


def test_json_matches_the_schema_of_the_api(run: Run) -> None:
    found = as_json(run)
    document = api_document()
    schema = {"$ref": "#/components/schemas/ConversationExport"}
    jsonschema.validate(found, {**schema, "components": document["components"]})
    assert (found["format"], found["version"], found["owner"]) == ("vel-conversation", 1, "ada")
    assert found["usage"] == {
        "input_tokens": 7,
        "output_tokens": 0,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "cost": "0.001500",
        "turns": 2,
    }
    (shown,) = found["runs"]
    assert shown["id"] == run.pk
    assert [turn["turn"] for turn in shown["turns"]] == [0, 1, 2]
    first, second, third = shown["turns"]
    assert first["messages"][0]["content"] == [{"type": "text", "text": "When does it rain?"}]
    assert second["messages"][0]["content"][0] == {"type": "thinking", "thinking": "Hm."}
    (made,) = second["tool_calls"]
    assert (made["input"], made["result"]) == ({"command": "cat rain.csv"}, "June,37")
    (decision,) = made["decisions"]
    assert (decision["decision"], decision["decided_by"]) == ("approve", "grace")
    assert third["messages"][0]["usage"]["cost"] == "0.001500"
    assert "s3cr3t" not in json.dumps(found)


def test_json_cuts_only_texts_of_more_than_a_megabyte(run: Run) -> None:
    call(run, 2, {"command": "x" * 900_000}, "y" * 900_000)
    made = as_json(run)["runs"][0]["turns"][2]["tool_calls"][0]
    assert (len(made["input"]["command"]), len(made["result"])) == (900_000, 900_000)


def test_markdown_cuts_long_inputs_and_outputs(run: Run) -> None:
    call(run, 2, {"command": "x" * 50_000}, "y" * 50_000)
    call(run, 2, result="z\n" * 500)
    text = exported(run)
    assert len(text) < 8_000
    assert "Output, cut:" in text


def test_all_runs_of_the_thread_and_of_subagents_are_exported_in_order(run: Run) -> None:
    reply(run, 3, "")
    (child,) = delegate(run, "Count the days")
    reply(child, 1, "Thirty.")
    later = runs.start_run(run.owner, "And snow?", thread=run.thread_id)
    other = runs.start_run(run.owner, "Something else")
    found = as_json(run)
    assert [each["id"] for each in found["runs"]] == [run.pk, later.pk]
    (shown,) = found["subagents"]
    assert (shown["id"], shown["parent"]) == (child.pk, run.pk)
    assert shown["turns"][1]["messages"][0]["content"][0]["text"] == "Thirty."
    text = exported(run)
    assert text.index("> And snow?") < text.index("## Subagent explore") < text.index("> Thirty.")
    assert other.pk not in text


@pytest.mark.both_databases
def test_runs_are_in_the_order_of_their_numbers_also_if_clocks_of_hosts_differ(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TURNS_AT_ONCE", 2)
    later = Run.objects.get(pk=run.pk)
    later.pk, later.number = "0" * 26, 2
    later.save(force_insert=True)
    RunClock.objects.create(run=later)
    reply(later, 0, "And snow?", role="user")
    reply(later, 1, "In January.")
    found = as_json(run)["runs"]
    assert [each["id"] for each in found] == [run.pk, later.pk]
    assert [len(each["turns"]) for each in found] == [3, 2]


def test_uploads_and_present_files_are_listed(run: Run) -> None:
    Upload.objects.create(
        thread=run.thread,
        run=run,
        name="a.csv",
        path="/user_uploads/a.csv",
        original_name="a`.csv",
        media_type="text/csv",
        size=12,
    )
    assert "Attached files: ``a`.csv`` (12 bytes)" in exported(run)
    assert as_json(run)["runs"][0]["uploads"][0]["name"] == "a`.csv"


def test_decisions_without_a_name_or_an_answer_say_so(run: Run) -> None:
    made = call(run, 2)
    decide(made, None, decision="reject")
    decide(made, None, status="pending", decision="", decided_at=None)
    text = exported(run)
    assert "Rejected by somebody" in text
    assert "Waiting for a decision." in text


@pytest.mark.parametrize("path", ["/api/v1/threads/{}/export", "/conversations/{}/export/"])
@pytest.mark.parametrize(
    ("form", "kind", "ending"),
    [("markdown", "text/markdown", "md"), ("json", "application/json", "json")],
)
def test_it_is_an_attachment_with_a_safe_name(
    run: Run, path: str, form: str, kind: str, ending: str
) -> None:
    title = '../../etc/"x\u202e; filename=evil.exe\r\nSet-Cookie: a=b'
    Thread.objects.filter(pk=run.thread_id).update(title=title)
    client: Any = client_for(run.owner, "read") if path.startswith("/api") else browser(run.owner)
    answer = client.get(path.format(run.thread_id), {"format": form})
    assert answer.status_code == 200
    assert answer["Content-Type"].partition(";")[0] == kind
    day = f"{run.thread.created_at:%Y-%m-%d}"
    name = f"etcx-filenameevilexe-set-cookie-ab-{day}.{ending}"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert "no-store" in answer["Cache-Control"]
    assert "Set-Cookie" not in answer
    body = body_of(answer)
    assert "It rains in **June**." in body
    assert form == "markdown" or json.loads(body)


@pytest.mark.parametrize("title", ["", "日本", "---", ".htaccess"])
def test_a_name_never_starts_with_a_dot_or_a_hyphen(run: Run, title: str) -> None:
    Thread.objects.filter(pk=run.thread_id).update(title=title)
    name = downloads.file_name(Conversation(run.owner, run.thread_id), "json")
    assert name[0].isalnum()


@pytest.mark.parametrize("permission", ["", "view_all_runs", "approve_toolcall"])
def test_nobody_else_gets_it(run: Run, permission: str) -> None:
    mallory = make_user("mallory", *([permission] if permission else []))
    refused = client_for(mallory).get(f"/api/v1/threads/{run.thread_id}/export")
    assert problem_of(refused)["code"] == "unknown_thread"
    assert browser(mallory).get(f"/conversations/{run.thread_id}/export/").status_code == 404
    assert "export/" not in browser(mallory).get(f"/runs/{run.pk}/").content.decode()


def test_an_unknown_format_is_refused(run: Run) -> None:
    answer = client_for(run.owner).get(f"/api/v1/threads/{run.thread_id}/export?format=pdf")
    assert answer.status_code == 400
    page = browser(run.owner).get(f"/conversations/{run.thread_id}/export/?format=pdf")
    assert page.status_code == 404


def test_a_token_needs_the_scope_to_read(run: Run) -> None:
    answer = client_for(run.owner, "run").get(f"/api/v1/threads/{run.thread_id}/export")
    assert answer.status_code == 403


def test_a_thread_of_a_subagent_is_no_conversation(run: Run) -> None:
    (child,) = delegate(run, "Count the days")
    answer = client_for(run.owner).get(f"/api/v1/threads/{child.thread_id}/export")
    assert answer.status_code == 404


def test_private_requests_are_only_for_the_owner_of_the_run(run: Run) -> None:
    decide(call(run, 2), run.owner, is_private=True, reason="mine")
    assert "Reason: mine" in exported(run)
    # A run of somebody else in the thread of ada: no feature makes one.
    Run.objects.filter(pk=run.pk).update(owner=make_user("mallory"))
    own = Conversation(User.objects.get(username="ada"), run.thread_id)
    assert "mine" not in "".join(downloads.pieces(own, "markdown"))


def test_an_export_ends_with_an_error_when_the_conversation_is_erased_meanwhile(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TURNS_AT_ONCE", 1)
    parts = downloads.pieces(Conversation(run.owner, run.thread_id), "json")
    for part in parts:
        if "When does it rain?" in part and '"turn":0' in part:
            break
    run.thread.delete()
    with pytest.raises(NotFound):
        list(parts)


def test_a_deactivated_owner_gets_no_further_part(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TURNS_AT_ONCE", 1)
    parts = downloads.pieces(Conversation(run.owner, run.thread_id), "markdown")
    assert "# When" in next(parts)
    User.objects.update(is_active=False)
    with pytest.raises(NotFound):
        list(parts)


def steps(run: Run, first: int, last: int) -> None:
    for turn in range(first, last):
        reply(run, turn, f"Step {turn}")
        call(run, turn)


@pytest.mark.both_databases
@pytest.mark.parametrize("form", ["markdown", "json"])
def test_queries_depend_on_the_parts_and_not_on_steps_or_runs(
    run: Run, form: str, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(20):
        exported(run, form)
    steps(run, 3, 40)
    for number in range(30):
        Run.objects.update(status="completed")
        later = runs.start_run(run.owner, f"Again {number}", thread=run.thread_id)
        steps(later, 1, 2)
    with django_assert_max_num_queries(20 + 7):  # one more part
        exported(run, form)


@pytest.mark.both_databases
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_parts_of_any_size_give_the_same_export(
    run: Run, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps(run, 3, 6)
    Run.objects.update(status="completed")
    runs.start_run(run.owner, "Again", thread=run.thread_id)
    whole = as_json(run)
    monkeypatch.setattr(reading, "TURNS_AT_ONCE", size)
    monkeypatch.setattr(reading, "BYTES_AT_ONCE", 50 * size)
    found = as_json(run)
    assert found["runs"] == whole["runs"]
    assert [len(each["turns"]) for each in found["runs"]] == [6, 1]


TEXT = dump([{"type": "text", "text": "x" * 5_000}])
RESULT = dump("y" * 20_000)


@pytest.mark.slow
def test_two_thousand_steps_need_little_memory(run: Run) -> None:
    replies, calls = [], []
    for turn in range(3, 2_003):
        replies.append(Message(run=run, turn=turn, role="assistant", content=TEXT))
        values = {"call_id": str(turn), "tool": "ls", "effect": "read", "status": "succeeded"}
        row = ToolCall(run=run, turn=turn, position=0, input="{}", result=RESULT, **values)
        calls.append(row)
    Message.objects.bulk_create(replies, batch_size=200)
    ToolCall.objects.bulk_create(calls, batch_size=200)
    del replies, calls
    conversation = Conversation(run.owner, run.thread_id)
    tracemalloc.start()
    try:
        size = sum(len(part) for part in downloads.pieces(conversation, "json"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 50_000_000
    assert peak < 25_000_000


def test_a_pending_request_about_the_run_itself_is_exported(run: Run) -> None:
    waits = runs.start_run(run.owner, "More", thread=run.thread_id)
    ApprovalRequest.objects.filter(pk=ask_approval(waits).pk).update(tool_call=None)
    assert "Waiting for a decision." in exported(run)
    assert as_json(run)["runs"][1]["requests"][0]["status"] == "pending"


def test_the_pages_link_to_the_downloads(run: Run) -> None:
    link = f'href="/conversations/{run.thread_id}/export/'
    for page in (f"/runs/{run.pk}/", "/conversations/"):
        text = browser(run.owner).get(page).content.decode()
        assert f'{link}">Export as Markdown</a>' in text
        assert f'{link}?format=json">Export as JSON</a>' in text
