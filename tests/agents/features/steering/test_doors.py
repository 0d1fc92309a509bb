"""A joined message on the pages, over REST, in streams and in shortened conversations."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from agents.engine.prompt.history import thread_turns
from agents.features.compaction.middleware import read_messages
from agents.features.compaction.plan import turn_tokens
from agents.features.steering.actions import send_now
from agents.features.steering.models import SteeringRequest
from agents.features.steering.projections import joined_chunks
from agents.models import Run
from memory.queries.readers import has_own_messages_only
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
)

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "See <b>/b</b> too. " + "x" * 3_000


def joined(tmp_path: Path, source: str = "web") -> tuple[Client, Run, Run]:
    """Return a client of the owner, an ended run, and the run whose message joined it."""
    user = make_user()
    look = {"tool_calls": [{"name": "ls", "input": {"path": "/"}}]}
    make_agent(user, model=script_file(tmp_path, [look, {"text": "Done."}, {"text": "Later."}]))
    run = start_run(user, "First", key="s", source=source)
    waiting = start_run(user, LONG, key="s", source="web", queue=True)
    assert send_now(waiting, by=user) == run
    run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    client = Client()
    client.force_login(user)
    return client, run, waiting


def test_the_doors_show_a_joined_message_once(tmp_path: Path) -> None:
    client, run, waiting = joined(tmp_path)
    rows = client.get(f"/api/v1/runs/{run.pk}/transcript").json()["results"]
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "user", "assistant"]
    assert rows[3]["content"] == [{"type": "text", "text": LONG}]
    (thread,) = client.get("/api/v1/threads").json()["results"]
    assert (thread["last_run"], thread["last_status"]) == (run.pk, "completed")
    summary = client.get(f"/runs/{run.pk}/summary/").json()
    assert [each["id"] for each in summary["thread"]] == [run.pk]
    later = start_run(run.owner, "Third", key="s", source="web")
    page = client.get(f"/runs/{later.pk}/").text
    assert page.count("See &lt;b&gt;/b&lt;/b&gt; too.") == 1
    assert f'id="earlier-{run.pk}"' in page
    assert f'id="earlier-{waiting.pk}"' not in page
    refused = client.post(f"/api/v1/runs/{waiting.pk}/resume", {}, "application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "never_started")


def test_the_stream_of_a_chat_client_contains_the_message(tmp_path: Path) -> None:
    _, run, waiting = joined(tmp_path)
    (event,) = events(run, "message.joined")
    (part,) = joined_chunks(event)
    assert (part["type"], part["id"]) == ("data-user-message", waiting.pk)
    assert part["data"] == {"text": LONG, "step": 1, "by": "ada", "files": []}


def test_a_compaction_keeps_and_cuts_a_joined_message(tmp_path: Path) -> None:
    _, run, _ = joined(tmp_path)
    messages = read_messages(run, (run.number, 2))
    assert [(each.key, each.text) for each in messages] == [("1", "First"), ("1.1.1", LONG)]
    assert [each.key for each in read_messages(run, (run.number, 1))] == ["1"]
    turn = next(each for each in thread_turns(run, (0, 0)) if each.place == (run.number, 1))
    whole, cuts = turn_tokens(turn, 100_000)
    short, cuts_then = turn_tokens(turn, 500)
    assert (cuts, cuts_then) == (0, 1)
    assert short < whole


@pytest.mark.parametrize(("source", "own"), [("web", True), ("webhook", False), ("mcp", False)])
def test_a_persons_message_does_not_make_a_run_of_another_program_their_own(
    tmp_path: Path, source: str, own: bool
) -> None:
    _, run, _ = joined(tmp_path, source)
    assert has_own_messages_only(run) is own


def test_rest_sends_the_next_waiting_message(tmp_path: Path) -> None:
    user = make_user()
    look = {"tool_calls": [{"name": "ls", "input": {"path": "/"}}]}
    make_agent(user, model=script_file(tmp_path, [look, {"text": "Done."}]))
    run = start_run(user, "First", key="s", source="api")
    waiting = start_run(user, "Second", key="s", source="api", queue=True)
    later = start_run(user, "Third", key="s", source="api", queue=True)
    client = Client()
    client.force_login(user)

    def send(which: Run, body: dict[str, object] | None = None) -> tuple[int, dict[str, object]]:
        path = f"/api/v1/runs/{which.pk}/send-now"
        answer = client.post(path, body or {}, "application/json")
        return answer.status_code, answer.json()

    status, problem = send(later)
    assert (status, problem["code"]) == (409, "not_waiting")
    assert send(waiting, {"now": True})[0] == 400
    assert send(waiting) == send(waiting) == (200, {"joins": run.pk})
    run = drive_to_end(run)
    assert [event["text"] for event in events(run, "message.joined")] == ["Second"]
    status, problem = send(waiting)
    assert (status, problem["code"]) == (409, "not_waiting")


def test_rest_says_that_a_message_gets_its_own_run() -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user, key="s", source="api")
    waiting = start_run(user, key="s", source="slack", queue=True)
    client = Client()
    client.force_login(user)
    sent = client.post(f"/api/v1/runs/{waiting.pk}/send-now", {}, "application/json")
    assert (sent.status_code, sent.json()) == (200, {"joins": None})
    assert Run.objects.get(pk=run.pk).status == "cancelled"
    assert Run.objects.get(pk=waiting.pk).status == "queued"


@pytest.mark.parametrize("rights", ["nobody", "staff", "superuser"])
def test_nobody_sends_a_message_of_another_person(rights: str) -> None:
    owner = make_user()
    make_agent(owner)
    run = start_run(owner, key="s", source="api")
    waiting = start_run(owner, key="s", source="api", queue=True)
    stranger = make_user("eve")
    stranger.is_staff = rights != "nobody"
    stranger.is_superuser = rights == "superuser"
    stranger.save()
    client = Client()
    client.force_login(stranger)
    sent = client.post(f"/api/v1/runs/{waiting.pk}/send-now", {}, "application/json")
    assert sent.status_code == 404
    assert not SteeringRequest.objects.exists()
    assert Run.objects.get(pk=run.pk).status == "queued"
