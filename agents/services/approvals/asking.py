"""Creation of approval requests. Each is bound to exactly the data that it shows."""

from __future__ import annotations

import hashlib
from dataclasses import replace
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

CHANGED = "It has changed since it was shown. Reload it and try again."


def digest_of(
    tool: str,
    tool_input: dict[str, Any],
    workspace_generation: int,
    preview: dict[str, Any] | None = None,
    family: str = "",
) -> str:
    """Return the digest that a decision is bound to.

    It covers the call, its input, the workspace's generation, the result of a trial of the call,
    and the files that other threads of the family write (`agents.features.approvals.gate`).
    """
    displayed = [tool, tool_input, workspace_generation]
    displayed += [preview] if preview is not None else []
    displayed += [family] if family else []
    return hashlib.sha256(dump(displayed).encode()).hexdigest()


def proposal_digest_of(
    kind: ProposalKind, tool: str, tool_input: dict[str, Any], proposal: Proposal
) -> str:
    """Return the digest for a proposal: the call, the base of the change, and its result."""
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
    """Create an approval request for `call`, and return its event, which the caller writes.

    The caller has locked the run.

    Args:
        run: The run of the call.
        call: The call.
        terms: The allowed decisions, the approvers and the expiry.
        prompt: Why approval is required.
        generation: `Thread.workspace_generation` of the files that the request shows.
        preview: The result of a trial of the call, if the tool has one.
        family: The digest of files that other threads of the family write; see `digest_of`.
    """
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
    """Create an approval request for the change that `call` proposes, and return its event.

    The caller has locked the run, and writes the event. `proposal` is the result of `kind`'s method
    `propose`; the other arguments are those of `ask_about_call`.
    """
    displayed = call.effective_input
    request = ApprovalRequest.objects.create(
        run=run,
        tool_call=call,
        kind=kind.name,
        tool=call.tool,
        input=displayed,
        prompt=prompt,
        digest=proposal_digest_of(kind, call.tool, displayed, proposal),
        **_terms_of(proposal, terms),
    )
    kind.store(request, proposal, call.turn)
    _announce(request)
    return requested_event(request)


def ask_beside(
    run: Run,
    kind: ProposalKind,
    proposal: Proposal,
    terms: AskTerms,
    tool: str,
    tool_input: dict[str, Any],
    *,
    step: int,
    prompt: str,
) -> ApprovalRequested:
    """Create an approval request for a proposed change, while the run continues.

    Returns its event, which the caller writes. `tool` and `tool_input` are those of the call that
    proposed the change, and `step` is the number of its model call.
    """
    request = ApprovalRequest.objects.create(
        run=run,
        kind=kind.name,
        tool=tool,
        input=tool_input,
        prompt=prompt,
        digest=proposal_digest_of(kind, tool, tool_input, proposal),
        **_terms_of(proposal, terms),
    )
    kind.store(request, proposal, step)
    _announce(request)
    return requested_event(request)


def _announce(request: ApprovalRequest) -> None:
    """Notify the people who receive notices about the agent, unless the request is private."""
    if not request.is_private:
        announce_request(request)


def _terms_of(proposal: Proposal, terms: AskTerms) -> dict[str, Any]:
    """Return the terms of a proposal. A private one has only one approver."""
    if proposal.is_private:
        terms = replace(terms, approvals_needed=1, self_approval=True)
    decisions = list(terms.allowed_decisions)
    if not proposal.can_be_edited:
        decisions = [word for word in decisions if word != Decision.EDIT]
    return {**_terms(terms, decisions), "is_private": proposal.is_private}


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
    """Replace `request` by one for the present form of its proposal, and return the new one.

    The caller has locked the run and the request. The event of the new request is written. Returns
    None, and keeps the old request, if the change can no longer be applied: then people can only
    reject it.
    """
    call = request.tool_call
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
    if call is not None:
        draft = ask_about_proposal(request.run, call, kind, proposal, terms, prompt=CHANGED)
    else:
        draft = ask_beside(
            request.run,
            kind,
            proposal,
            terms,
            request.tool,
            request.input,
            step=kind.background(request).step,
            prompt=CHANGED,
        )
    anew = ApprovalRequest.objects.get(pk=draft.approval_id)
    if request.expires_at is not None:
        anew.expires_at = request.expires_at  # the deadline stays the same
        anew.save(update_fields=["expires_at"])
    if not request.run.has_ended:
        append_events(request.run_id, [requested_event(anew)])
    return anew


def requested_event(request: ApprovalRequest) -> ApprovalRequested:
    """Return the event `approval.requested`. Long inputs are cut in it, but not in the request.

    Everybody who may watch the run reads it. So it does not show the input of a private request.
    """
    kind = proposal_kind(request)
    fields = kind.event_fields(request) if kind is not None else {}
    return ApprovalRequested(
        approval_id=request.id,
        call_id=request.tool_call.call_id if request.tool_call else None,
        tool=request.tool,
        input={} if request.is_private else preview_input(request.input),
        kind=request.kind,
        prompt=request.prompt,
        digest=request.digest,
        allowed_decisions=request.allowed_decisions,
        approvals_needed=request.approvals_needed,
        expires_at=request.expires_at.isoformat() if request.expires_at else None,
        path=fields.get("path", OMITTED),
        operation=fields.get("operation", OMITTED),
    )
