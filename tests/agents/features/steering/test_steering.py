"""A waiting message that needs its own run is sent now: the work stops for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.test import Client

from agents.features.steering.actions import REASON, send_now
from agents.features.steering.models import SteeringRequest
from agents.models import AuditEntry, Run, ToolCall
from agents.services.errors import Conflict, NotAllowed
from agents.settings import DataSettings
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

FOREIGN = "slack"
"""The source of a message that cannot join a run."""

COMMAND = "echo started; until [ -e /sandbox/outputs/go ]; do sleep 0.05; done; echo finished"
SECOND = "echo second > /sandbox/outputs/second"


def two_calls(directory: Path) -> str:
    """Return a script whose first turn has a command that waits for a file, and another one."""
    calls = [{"name": "execute", "input": {"command": each}} for each in (COMMAND, SECOND)]
    return script_file(directory, [{"tool_calls": calls}, {"text": "Not reached"}])


@pytest.mark.bubblewrap
def test_the_running_call_ends_and_the_message_is_next(tmp_path: Path) -> None:
    user = make_user()
    make_agent(user, model=two_calls(tmp_path), sandbox=True)
    run = start_run(user, key="s", source="web")
    waiting = start_run(user, key="s", source=FOREIGN, queue=True, message="Now")
    outputs = DataSettings.now().workspaces / run.thread_id / "outputs"
    with running_worker() as running:
        running.submit(run.id)
        wait_until(lambda: "tool.progress" in event_types(run), "output of the command")
        send_now(waiting, by=user)
        send_now(waiting, by=user)
        assert Run.objects.get(pk=run.pk).status == "running"
        (outputs / "go").touch()
        wait_for_status(run, "cancelled")
    first, second = ToolCall.objects.filter(run=run).order_by("position")
    assert first.status == "succeeded"
    assert "finished" in first.result
    assert (second.status, second.code) == ("failed", "superseded")
    assert not (outputs / "second").exists()
    (event,) = events(run, "run.cancelled")
    assert event["reason"] == REASON
    assert Run.objects.get(pk=waiting.pk).status == "queued"
    assert AuditEntry.objects.filter(action="run.cancelled", note=REASON).count() == 1


@pytest.mark.bubblewrap
def test_all_calls_of_the_turn_are_made_before_a_message_joins(tmp_path: Path) -> None:
    user = make_user()
    make_agent(user, model=two_calls(tmp_path), sandbox=True)
    run = start_run(user, key="s", source="web")
    waiting = start_run(user, key="s", source="web", queue=True, message="Now")
    outputs = DataSettings.now().workspaces / run.thread_id / "outputs"
    with running_worker() as running:
        running.submit(run.id)
        wait_until(lambda: "tool.progress" in event_types(run), "output of the command")
        assert send_now(waiting, by=user) == run
        (outputs / "go").touch()
        wait_for_status(run, "completed")
    calls = ToolCall.objects.filter(run=run).order_by("position")
    assert [call.status for call in calls] == ["succeeded", "succeeded"]
    kinds = [kind for kind in event_types(run) if kind in ("tool.completed", "message.joined")]
    assert kinds == ["tool.completed", "tool.completed", "message.joined"]


def test_a_worker_that_takes_the_run_over_stops_it_too(tmp_path: Path) -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user, key="s", source="web")
    waiting = start_run(user, key="s", source="web", queue=True)
    SteeringRequest.objects.create(run=run, by="ada")
    assert drive_to_end(run).status == "cancelled"
    assert not any(kind.startswith("step.") for kind in event_types(run))
    assert Run.objects.get(pk=waiting.pk).status == "queued"


@pytest.mark.parametrize("source", ["web", "api"])
def test_a_run_without_a_worker_ends_at_once(source: str) -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user, key="s", source=source)
    waiting = start_run(user, key="s", source=FOREIGN, queue=True)
    send_now(waiting, by=user)
    assert Run.objects.get(pk=run.pk).status == "cancelled"
    assert Run.objects.get(pk=waiting.pk).status == "queued"
    assert not SteeringRequest.objects.exists()


def test_only_the_next_message_can_be_sent_now() -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user, key="s")
    first, second = (start_run(user, key="s", queue=True, source=FOREIGN) for _ in range(2))
    for wrong in (second, run):
        with pytest.raises(Conflict, match="not the next message"):
            send_now(wrong, by=user)
    send_now(first, by=user)
    with pytest.raises(Conflict, match="not the next message"):
        send_now(first, by=user)
    states = Run.objects.order_by("number").values_list("status", flat=True)
    assert list(states) == ["cancelled", "queued", "pending"]


def test_nobody_else_can_send_it_now() -> None:
    user, other = make_user(), make_user("peter")
    make_agent(user)
    run = start_run(user, key="s")
    waiting = start_run(user, key="s", queue=True)
    with pytest.raises(NotAllowed):
        send_now(waiting, by=other)
    client = Client()
    client.force_login(other)
    assert client.post(f"/runs/{waiting.pk}/send-now/").status_code == 404
    assert client.get(f"/runs/{waiting.pk}/send-now/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)
    assert strict.post(f"/runs/{waiting.pk}/send-now/").status_code == 403
    assert Run.objects.get(pk=run.pk).status == "queued"


def test_the_page_sends_it_and_says_why_it_cannot() -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user, key="s")
    first, second = (start_run(user, key="s", queue=True) for _ in range(2))
    client = Client()
    client.force_login(user)
    as_json = {"accept": "application/json"}
    refused = client.post(f"/runs/{second.pk}/send-now/", headers=as_json)
    assert refused.status_code == 409
    assert "not the next message" in json.loads(refused.content)["message"]
    assert "not the next message" in client.post(f"/runs/{second.pk}/send-now/", follow=True).text
    sent = client.post(f"/runs/{first.pk}/send-now/", headers=as_json)
    assert (sent.status_code, sent.json()["message"]) == (200, "")
    assert "reads it after its current step" in sent.json()["told"]
    plain = client.post(f"/runs/{first.pk}/send-now/")
    assert (plain.status_code, plain.headers["Location"]) == (302, f"/runs/{run.pk}/")
    assert "reads it after its current step" in client.get(plain.headers["Location"]).text


def test_the_page_says_that_a_message_ends_the_work() -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user, key="s")
    waiting = start_run(user, key="s", queue=True, source=FOREIGN)
    client = Client()
    client.force_login(user)
    sent = client.post(f"/runs/{waiting.pk}/send-now/", follow=True)
    assert sent.redirect_chain == [(f"/runs/{waiting.pk}/", 302)]
    assert "The work stops after its current step" in sent.text
    assert Run.objects.get(pk=run.pk).status == "cancelled"
