"""Agents in Slack: their tools, approvals, and failures."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers

from agents.features.credentials.actions import remove_credential
from agents.features.credentials.public import Credential
from agents.features.slack.actions import save_slack_token
from agents.middleware.registry import build_toolset
from agents.models import AgentVersion, ApprovalRequest, Run, RunEvent, ToolCall
from agents.secret_text import SecretText, SecretTextField
from agents.services.agent_definitions.actions import build_spec
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run
from tests.support.slack_server import TOKEN, SlackServer

pytestmark = pytest.mark.django_db(transaction=True)

ROOM = "C000000001"


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "input": given}]}


SEND = call("send_slack_message", channel_id=ROOM, text="The report is ready.")
LIST = call("list_slack_channels")


def begin(tmp_path: Path, *turns: dict[str, Any], **fields: Any) -> tuple[User, Run]:
    user = make_user()
    model = script_file(tmp_path, [*turns, {"text": "Done."}])
    make_agent(user, model=model, **{"integrations": ["slack"], **fields})
    return user, start_run(user)


def approve(user: User, run: Run) -> None:
    request = ApprovalRequest.objects.get(run=run, status="pending")
    decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=user)


def results(run: Run) -> list[Any]:
    calls = ToolCall.objects.filter(run=run).order_by("turn", "position")
    return [json.loads(call.result) for call in calls if call.result]


def text_of(result: Any) -> str:
    return json.dumps(result)


@pytest.mark.slow
def test_channels_are_listed_unasked_and_a_message_waits_for_a_person(
    tmp_path: Path, slack: SlackServer
) -> None:
    user, run = begin(tmp_path, LIST, SEND)
    save_slack_token(TOKEN, by=user)
    run = drive_to_end(run, until=("waiting",))
    assert all(f"room-{number}" in text_of(results(run)[0]) for number in range(3))
    assert not slack.sent

    approve(user, run)
    run = drive_to_end(run)
    assert run.status == "completed"
    (sent,) = slack.sent
    assert (sent["channel"], sent["text"]) == (ROOM, "The report is ready.")
    # Slack would fetch a link to unfurl it, which could leak data in the link.
    assert (sent["unfurl_links"], sent["unfurl_media"]) == ("False", "False")
    assert "1700000000.000001" in text_of(results(run)[1])


@pytest.mark.parametrize(
    ("room", "error", "said"),
    [
        (ROOM, "", f"{ROOM} is the private channel #room-1."),
        ("C000000002", "", "C000000002 is the channel #room-2."),
        ("C999999999", "", "C999999999: There is no such channel"),
        (ROOM, "internal_error", f"{ROOM}: Slack refused: internal_error."),
    ],
)
def test_the_request_names_the_channel(
    tmp_path: Path, slack: SlackServer, room: str, error: str, said: str
) -> None:
    user, run = begin(tmp_path, call("send_slack_message", channel_id=room, text="Ready."))
    save_slack_token(TOKEN, by=user)
    slack.errors = {"conversations.info": error} if error else {}
    run = drive_to_end(run, until=("waiting",))
    request = ApprovalRequest.objects.get(run=run)
    assert said in request.prompt
    (event,) = RunEvent.objects.filter(run=run, type="approval.requested")
    assert said in json.loads(event.data)["prompt"]
    asked = len(slack.asked)
    approve(user, run)
    assert drive_to_end(run).status == "completed"
    assert [method for method, _ in slack.asked[asked:]] == ["chat.postMessage"]


def test_a_rejected_message_is_not_sent(tmp_path: Path, slack: SlackServer) -> None:
    user, run = begin(tmp_path, SEND)
    save_slack_token(TOKEN, by=user)
    run = drive_to_end(run, until=("waiting",))
    request = ApprovalRequest.objects.get(run=run)
    decide_approval(request.pk, DecisionRequest("reject", digest=request.digest), by=user)
    assert drive_to_end(run).status == "completed"
    assert not slack.sent


def test_the_shape_of_a_channel(slack: SlackServer) -> None:
    from agents.features.slack.client import SlackClient

    channels = SlackClient(SecretText.seal(TOKEN)).channels(2)
    assert channels == [
        {"id": "C000000000", "name": "room-0", "is_private": False},
        {"id": "C000000001", "name": "room-1", "is_private": True},
    ]


def test_without_a_credential_the_call_names_the_solution(
    tmp_path: Path, slack: SlackServer
) -> None:
    _, run = begin(tmp_path, LIST)
    run = drive_to_end(run)
    assert "not connected" in text_of(results(run)[0])
    assert not slack.asked


def test_a_token_that_is_removed_is_not_used_once_more(tmp_path: Path, slack: SlackServer) -> None:
    user, run = begin(tmp_path, SEND)
    save_slack_token(TOKEN, by=user)
    run = drive_to_end(run, until=("waiting",))
    remove_credential("slack", by=user)
    approve(user, run)
    run = drive_to_end(run)
    assert "not connected" in text_of(results(run)[0])
    assert not slack.sent


def test_tokens_of_others_are_never_used(tmp_path: Path, slack: SlackServer) -> None:
    save_slack_token(TOKEN, by=make_user("eve"))
    _, run = begin(tmp_path, LIST)
    run = drive_to_end(run)
    assert "not connected" in text_of(results(run)[0])


@pytest.mark.slow
def test_the_shared_token_serves_only_people_without_their_own(
    tmp_path: Path, slack: SlackServer
) -> None:
    own = TOKEN.replace("111111111111", "333333333333")
    slack.tokens.add(own)
    admin = make_user("root", is_superuser=True)
    save_slack_token(TOKEN, by=admin, shared=True)
    slack.tokens.remove(TOKEN)  # the next request is refused
    user, run = begin(tmp_path, LIST)
    save_slack_token(own, by=user)
    assert "room-1" in text_of(results(drive_to_end(run))[0])
    remove_credential("slack", by=user)
    run = drive_to_end(start_run(user))
    assert "does not accept the token" in text_of(results(run)[0])


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("not_in_channel", "must invite it"),
        ("missing_scope", "lacks the scope chat:write"),
        ("something_new", "Slack refused: something_new"),
    ],
)
def test_a_refusal_by_slack_is_explained(
    tmp_path: Path, slack: SlackServer, word: str, said: str
) -> None:
    user, run = begin(tmp_path, SEND)
    save_slack_token(TOKEN, by=user)
    slack.errors["chat.postMessage"] = word
    run = drive_to_end(run, until=("waiting",))
    approve(user, run)
    assert said in text_of(results(drive_to_end(run))[0])


@pytest.mark.parametrize("fault", ["cut", "500"])
def test_a_message_with_unknown_outcome_is_sent_once_and_reported(
    tmp_path: Path, slack: SlackServer, fault: str
) -> None:
    user, run = begin(tmp_path, SEND)
    save_slack_token(TOKEN, by=user)
    if fault == "cut":
        slack.cut_after_work.add("chat.postMessage")
    else:
        slack.statuses["chat.postMessage"] = 500
    run = drive_to_end(run, until=("waiting",))
    approve(user, run)
    run = drive_to_end(run)
    assert len(slack.sent) == 1
    assert "t is unknown whether" in text_of(results(run)[0])


def test_unconfigured_tools_are_not_offered(tmp_path: Path) -> None:
    user = make_user()
    plain = make_agent(user)
    other = make_agent(user, name="Other", slug="other", integrations=["slack"])
    assert "send_slack_message" not in build_toolset(build_spec(plain)).tools
    assert "send_slack_message" in build_toolset(build_spec(other)).tools
    assert AgentVersion.objects.get(agent=plain).spec["integrations"] == []


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_token_is_nowhere_but_encrypted_in_its_row(
    tmp_path: Path, slack: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    look = (
        "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env; "
        "grep -rs xoxb- /sandbox /tmp /etc /home /root /var /run /dev/shm 2>/dev/null; echo looked"
    )
    user, run = begin(tmp_path, LIST, call("execute", command=look), sandbox=True)
    save_slack_token(TOKEN, by=user)
    run = drive_to_end(run)
    assert "looked" in text_of(results(run)[1])
    plain = TOKEN.removeprefix("xoxb-")
    assert plain not in caplog.text
    assert not any(plain in value for value in os.environ.values())
    for model in apps.get_models():
        for row in model._default_manager.all():
            assert plain not in serializers.serialize("json", [row]), model
            for field in model._meta.concrete_fields:
                if not isinstance(field, SecretTextField):
                    assert plain not in str(getattr(row, field.attname)), (model, field)
    assert RunEvent.objects.filter(run=run).exists()
    assert Credential.objects.get().secret.reveal() == TOKEN
