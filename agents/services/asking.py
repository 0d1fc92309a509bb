"""Putting a question to a person: a request that is bound to exactly what it shows."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from agents.events.append import append_events, dump
from agents.events.catalogue.approvals import ApprovalRequested
from agents.events.event import OMITTED
from agents.events.preview import preview_input
from agents.models import ApprovalKind, ApprovalRequest, Run, ToolCall
from agents.policy import AskTerms
from agents.services.errors import InvalidRequest
from agents.services.memory_edits import Proposal, asked_edit, propose_edit, record_proposal
from agents.services.notices import announce_request
from agents.states import APPROVAL_TRANSITIONS, ApprovalStatus, Decision, check_transition

CHANGED = "It has changed since it was shown: look at it again."


def digest_of(
    tool: str,
    tool_input: dict[str, Any],
    workspace_generation: int,
    preview: dict[str, Any] | None = None,
    family: str = "",
) -> str:
    """What a decision is bound to: the call, its input, the workspace it would meet, what a trial
    of it has shown, and the files that others write, too (`agents.engine.family_state`).
    """
    displayed = [tool, tool_input, workspace_generation]
    displayed += [preview] if preview is not None else []
    displayed += [family] if family else []
    return hashlib.sha256(dump(displayed).encode()).hexdigest()


def memory_digest_of(tool: str, tool_input: dict[str, Any], proposal: Proposal) -> str:
    """For an edit of the memory: the call, the file it builds on, and the file it would make."""
    edit = proposal.edit
    displayed = [
        tool,
        tool_input,
        edit.path,
        edit.operation,
        proposal.base_revision,
        proposal.after,
    ]
    return hashlib.sha256(dump(["memory", *displayed]).encode()).hexdigest()


def ask_about_call(
    run: Run,
    call: ToolCall,
    terms: AskTerms,
    *,
    prompt: str,
    generation: int,
    preview: dict[str, Any] | None = None,
    family: str = "",
) -> ApprovalRequested:
    """Ask whether `call` may run in the workspace as it is now. The run is locked."""
    displayed = call.effective_input
    request = ApprovalRequest.objects.create(
        run=run,
        tool_call=call,
        tool=call.tool,
        input=displayed,
        prompt=prompt,
        digest=digest_of(call.tool, displayed, generation, preview, family),
        preview=preview,
        workspace_generation=generation,
        **_terms(terms, list(terms.allowed_decisions)),
    )
    announce_request(request)
    return requested_event(request)


def ask_about_memory(
    run: Run, call: ToolCall, proposal: Proposal, terms: AskTerms, *, prompt: str
) -> ApprovalRequested:
    """Ask whether `call` may change the memory. The run is locked."""
    displayed = call.effective_input
    decisions = list(terms.allowed_decisions)
    if proposal.after is None:
        decisions = [word for word in decisions if word != Decision.EDIT]
    request = ApprovalRequest.objects.create(
        run=run,
        tool_call=call,
        kind=ApprovalKind.MEMORY,
        memory_edit=record_proposal(run, call.turn, proposal),
        tool=call.tool,
        input=displayed,
        prompt=prompt,
        digest=memory_digest_of(call.tool, displayed, proposal),
        **_terms(terms, decisions),
    )
    announce_request(request)
    return requested_event(request)


def _terms(terms: AskTerms, decisions: list[str]) -> dict[str, Any]:
    expires: datetime | None = None
    if terms.expiry is not None:
        expires = timezone.now() + timedelta(seconds=terms.expiry)
    return {
        "allowed_decisions": decisions,
        "approvals_needed": terms.approvals_needed,
        "self_approval": terms.self_approval,
        "expires_at": expires,
    }


def ask_memory_anew(request: ApprovalRequest) -> ApprovalRequest | None:
    """Put a question whose file has changed once more, as it is now. Run and request are locked.

    None, and the old question stands, when the edit does not fit the changed file: it can only be
    rejected.
    """
    call, old = request.tool_call, request.memory_edit
    assert call is not None
    assert old is not None
    try:
        proposal = propose_edit(old.agent_id, asked_edit(old))
    except InvalidRequest:
        return None
    check_transition(APPROVAL_TRANSITIONS, request.status, ApprovalStatus.SUPERSEDED)
    request.status = ApprovalStatus.SUPERSEDED
    request.save(update_fields=["status"])
    terms = AskTerms(
        allowed_decisions=tuple(request.allowed_decisions),
        approvals_needed=request.approvals_needed,
        self_approval=request.self_approval,
    )
    draft = ask_about_memory(request.run, call, proposal, terms, prompt=CHANGED)
    anew = ApprovalRequest.objects.get(pk=draft.approval_id)
    if request.expires_at is not None:
        anew.expires_at = request.expires_at  # a change of the file gives nobody more time
        anew.save(update_fields=["expires_at"])
    append_events(request.run_id, [requested_event(anew)])
    return anew


def requested_event(request: ApprovalRequest) -> ApprovalRequested:
    """`approval.requested`, as watchers get it; a long input is cut, the request has the whole."""
    edit = request.memory_edit
    return ApprovalRequested(
        approval_id=request.id,
        call_id=request.tool_call.call_id if request.tool_call else None,
        tool=request.tool,
        input=preview_input(request.input),
        kind=request.kind,
        prompt=request.prompt,
        digest=request.digest,
        allowed_decisions=request.allowed_decisions,
        approvals_needed=request.approvals_needed,
        expires_at=request.expires_at.isoformat() if request.expires_at else None,
        path=edit.path if edit is not None else OMITTED,
        operation=edit.operation if edit is not None else OMITTED,
    )
