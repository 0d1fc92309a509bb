"""Notifications of approval requests.

A message names the tool and the page of the request, but never the call's input: it may contain
secrets and the content of a file. Tool names and prompts come from people and specifications. They
are shown with hidden characters as code points, and cut.
"""

from __future__ import annotations

from typing import Any

from django.urls import NoReverseMatch, reverse

from agents.hidden_text import cut_text, one_line, visible
from agents.kernel.notices import Message, Notice, NoticeKind, announce
from agents.models import POOL, ApprovalRequest
from agents.settings import PageSettings
from agents.states import ApprovalStatus

REQUESTED = "approval.requested"
_PROMPT_CHARACTERS = 1_000
_NAME_CHARACTERS = 100


def announce_request(request: ApprovalRequest) -> None:
    """Create a notification of a request, in the transaction that creates the request."""
    run = request.run
    announce(
        Notice(
            type=REQUESTED,
            subject_id=request.pk,
            agent_version_id=run.agent_version_id,
            run_id=run.pk,
            for_workers=run.executor == POOL,
        )
    )


class RequestKind(NoticeKind):
    """A pending approval request."""

    type = REQUESTED
    field = "request"
    model = "agents.ApprovalRequest"
    no_longer = "The request is no longer pending, so the message is not needed."

    def is_needed(self, subject_id: str) -> bool:
        pending = ApprovalRequest.objects.filter(status=ApprovalStatus.PENDING)
        return pending.filter(pk=subject_id).exists()

    def message(self, subject_id: str) -> Message | None:
        rows = ApprovalRequest.objects.select_related("run__agent_version__agent")
        request = rows.defer("input", "edited_input").filter(pk=subject_id).first()
        return None if request is None else request_message(request)


def request_message(request: ApprovalRequest) -> Message:
    agent = request.run.agent_version.agent
    tool = one_line(request.tool, _NAME_CHARACTERS)
    prompt = cut_text(visible(request.prompt), _PROMPT_CHARACTERS)
    until = request.expires_at
    url = page_url("web:approval", request.id)
    data: dict[str, Any] = {
        "id": request.id,
        "kind": request.kind,
        "tool": tool,
        "agent": agent.slug,
        "run": request.run_id,
        "prompt": prompt,
        "created_at": request.created_at.isoformat(),
        "expires_at": until.isoformat() if until else None,
        "url": url,
    }
    name = one_line(agent.name, _NAME_CHARACTERS)
    lines = (
        f"The agent {name} asks before it calls {tool}.",
        *([f"Why it is asked: {prompt}"] if prompt else []),
        *([f"Without an answer it is rejected at {until:%Y-%m-%d %H:%M} UTC."] if until else []),
        "",
        url,
    )
    return Message(data, f"{name} asks: {tool}", lines)


def page_url(name: str, row_id: str) -> str:
    """Return the URL of a page, or of the root in a project without Vel's pages."""
    try:
        path = reverse(name, args=[row_id])
    except NoReverseMatch:
        path = "/"
    return PageSettings.now().PUBLIC_URL.rstrip("/") + path


KINDS: tuple[type[NoticeKind], ...] = (RequestKind,)
