"""Pending requests, and their pages for a user."""

from __future__ import annotations

from typing import Any

from django.test import Client

from agents.models import ApprovalRequest
from memory.models import MemoryEditRequest
from tests.support import site_writer

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e\u200b"
JSON = {"accept": "application/json"}


def ask(run: str, tool: str = "send", /, **given: Any) -> ApprovalRequest:
    return ApprovalRequest.objects.get(pk=site_writer.ask(run, tool, given))


def decide(client: Client, request: ApprovalRequest, decision: str, **fields: Any) -> Any:
    data = {"decision": decision, "digest": request.digest, **fields}
    return client.post(f"/approvals/{request.pk}/decide/", data, headers=JSON)


def stored(request: ApprovalRequest) -> ApprovalRequest:
    request.refresh_from_db()
    return request


def html(client: Client, url: str = "/approvals/") -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return str(answer.content.decode())


def shown_ids(client: Client, query: str = "") -> list[str]:
    return list(client.get(f"/approvals/live/?{query}").json()["order"])


def remember(run: str, content: str, **fields: Any) -> ApprovalRequest:
    """Create a request to change the memory, as the engine does."""
    request = ask(run, "write_memory", path="knowledge/a.md", content=content)
    MemoryEditRequest.objects.create(
        approval=request,
        agent_id=request.run.agent_version.agent_id,
        run_id=run,
        path="knowledge/a.md",
        operation="write",
        proposed_content=content,
        reason="It was said.",
        provenance={"step": 3, "sources": [{"step": 2, "tool": "fetch", "source": "http://x"}]},
        warnings=["The memory would be 90% full."],
    )
    request.kind = "memory"
    request.allowed_decisions = ["approve", "edit", "reject"]
    request.save()
    return request
