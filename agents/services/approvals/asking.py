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
from agents.kernel.proposals import Proposal, ProposalKind, proposal_kind
from agents.models import ApprovalRequest, Run, ToolCall
from agents.policy import AskTerms
from agents.services.approvals.notices import announce_request
from agents.services.errors import InvalidRequest
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
    of it has shown, and the files that others write, too (`agents.engine.calls.family_state`).
    """
    displayed = [tool, tool_input, workspace_generation]
    displayed += [preview] if preview is not None else []
    displayed += [family] if family else []
    return hashlib.sha256(dump(displayed).encode()).hexdigest()


def proposal_digest_of(
    kind: ProposalKind, tool: str, tool_input: dict[str, Any], proposal: Proposal
) -> str:
    """For a proposal: the call, what it builds on, and what it would make."""
    displayed = [kind.name, tool, tool_input, *proposal.bound]
    return hashlib.sha256(dump(displayed).encode()).hexdigest()


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


def ask_about_proposal(
    run: Run,
    call: ToolCall,
    kind: ProposalKind,
    proposal: Proposal,
    terms: AskTerms,
    *,
    prompt: str,
) -> ApprovalRequested:
    """Ask whether the change that `call` proposes is made. The run is locked."""
    displayed = call.effective_input
    decisions = list(terms.allowed_decisions)
    if not proposal.can_be_edited:
        decisions = [word for word in decisions if word != Decision.EDIT]
    request = ApprovalRequest.objects.create(
        run=run,
        tool_call=call,
        kind=kind.name,
        tool=call.tool,
        input=displayed,
        prompt=prompt,
        digest=proposal_digest_of(kind, call.tool, displayed, proposal),
        **_terms(terms, decisions),
    )
    kind.store(request, proposal, call.turn)
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


def ask_again(request: ApprovalRequest, kind: ProposalKind) -> ApprovalRequest | None:
    """Ask about a proposal once more, as it is now. Run and request are locked.

    None, and the old question stands, if the change does not fit any more: it can only be
    rejected.
    """
    call = request.tool_call
    assert call is not None
    try:
        proposal = kind.propose_again(request)
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
    draft = ask_about_proposal(request.run, call, kind, proposal, terms, prompt=CHANGED)
    anew = ApprovalRequest.objects.get(pk=draft.approval_id)
    if request.expires_at is not None:
        anew.expires_at = request.expires_at  # nobody gets more time
        anew.save(update_fields=["expires_at"])
    append_events(request.run_id, [requested_event(anew)])
    return anew


def requested_event(request: ApprovalRequest) -> ApprovalRequested:
    """`approval.requested`, as watchers get it; a long input is cut, the request has the whole."""
    kind = proposal_kind(request)
    fields = kind.event_fields(request) if kind is not None else {}
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
        path=fields.get("path", OMITTED),
        operation=fields.get("operation", OMITTED),
    )
