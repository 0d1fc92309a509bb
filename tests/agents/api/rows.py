"""Rows and clients that the API tests use."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from rest_framework.test import APIClient

from agents.events.append import dump
from agents.models import Agent, ApprovalRequest, Effect, Message, MessageRole, Run, ToolCall
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.asking import digest_of
from agents.services.runs.start import RunRequest, create_run
from agents.services.tokens import create_token
from agents.states import Decision, RunStatus, ToolCallStatus, WaitReason

ALL_SCOPES = ("read", "run", "approve", "manage")
INPUT = {"command": "rm -r build"}


def make_user(name: str, *permissions: str, superuser: bool = False) -> User:
    make = User.objects.create_superuser if superuser else User.objects.create_user
    user = make(name, password="let-me-in-please")
    for codename in permissions:
        user.user_permissions.add(Permission.objects.get(codename=codename))
    return user


def make_agent(slug: str = "writer", *, everyone: bool = True, **fields: Any) -> Agent:
    return save_agent(
        Agent(
            name=slug.title(),
            slug=slug,
            everyone=everyone,
            **{"provider": "scripted", "model": "demo", "description": "Writes things.", **fields},
        )
    )


def make_run(owner: User, *, agent: str = "writer", message: str = "Hello", **more: Any) -> Run:
    return create_run(RunRequest(agent=agent, message=message, **more), owner=owner).run


def answer_run(run: Run, text: str) -> None:
    """Complete the run with `text`, as a driver does."""
    Message.objects.create(
        run=run, turn=1, role=MessageRole.ASSISTANT, content=dump([{"type": "text", "text": text}])
    )
    Run.objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED, finish_reason="end_turn")


def ask_approval(run: Run, *, allowed: tuple[str, ...] = tuple(Decision.values)) -> ApprovalRequest:
    """Park the run on one call that waits for approval, as a driver does."""
    Run.objects.filter(pk=run.pk).update(status=RunStatus.WAITING, wait_reason=WaitReason.APPROVAL)
    call = ToolCall.objects.create(
        run=run,
        turn=1,
        position=run.tool_calls.count(),
        call_id=f"call_{run.tool_calls.count()}",
        tool="execute",
        input=dump(INPUT),
        effect=Effect.EXTERNAL,
        status=ToolCallStatus.WAITING,
    )
    return ApprovalRequest.objects.create(
        run=run,
        tool_call=call,
        tool="execute",
        input=INPUT,
        allowed_decisions=list(allowed),
        digest=digest_of("execute", INPUT, 0),
    )


def client_for(user: User, *scopes: str) -> APIClient:
    """Return a client with a token of `user`: with all scopes if none are named."""
    _, secret = create_token(user, scopes=scopes or ALL_SCOPES)
    return client_with(secret)


def client_with(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def post(client: APIClient, url: str, body: object = None, **headers: str) -> HttpResponse:
    return client.post(url, body, format="json", headers=headers)


def problem_of(response: HttpResponse) -> dict[str, Any]:
    """Return the problem document of a refused request, and check its format."""
    assert response["Content-Type"] == "application/problem+json"
    document = json.loads(response.content)
    assert {"type", "title", "status", "detail", "code"} <= set(document)
    assert document["status"] == response.status_code
    return document
