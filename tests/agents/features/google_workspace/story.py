"""Scripted runs of an agent with Gmail and Calendar."""

from __future__ import annotations

import json
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from agents.features.google_workspace.actions import save_google_key
from agents.models import ApprovalRequest, Run, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from tests.support.google_workspace_server import authorized_user
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "input": given}]}


def begin(
    tmp_path: Path, *turns: dict[str, Any], connect: bool = True, **fields: Any
) -> tuple[User, Run]:
    user = make_user()
    model = script_file(tmp_path, [*turns, {"text": "Done."}])
    make_agent(user, model=model, **{"integrations": ["gmail", "calendar"], **fields})
    if connect:
        save_google_key(authorized_user(), by=user)
    return user, start_run(user)


def approve(user: User, run: Run) -> ApprovalRequest:
    request = ApprovalRequest.objects.get(run=run, status="pending")
    decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=user)
    return request


def play(tmp_path: Path, *turns: dict[str, Any], **fields: Any) -> tuple[Run, list[Any]]:
    """Drive a run to its end, approve all requests, and return the run and its results."""
    user, run = begin(tmp_path, *turns, **fields)
    ends = ("completed", "failed", "cancelled")
    run = drive_to_end(run, until=("waiting", *ends))
    while run.status == "waiting":
        approve(user, run)
        run = drive_to_end(run, until=("waiting", *ends))
    return run, results(run)


def results(run: Run) -> list[Any]:
    """Return the results, parsed as JSON if they are objects."""
    calls = ToolCall.objects.filter(run=run).order_by("turn", "position")
    return [_value(json.loads(call.result)) for call in calls if call.result]


def _value(content: Any) -> Any:
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return content


def letter(subject: str = "Lunch", text: str = "At noon?", **heads: str) -> EmailMessage:
    message = EmailMessage()
    given = {"From": "Bob <bob@example.org>", "To": "ada@example.com", "Subject": subject}
    for name, value in {**given, "Message-ID": "<m1@example.org>", **heads}.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message
