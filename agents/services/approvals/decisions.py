"""Decisions of people: each is bound to a digest and made once (invariant 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from agents.events.append import EventDraft, append_events, dump
from agents.events.catalogue.approvals import ApprovalDecided, ApprovalSeconded
from agents.events.catalogue.tool_calls import ToolCompleted, ToolDenied
from agents.events.event import OMITTED
from agents.events.preview import preview
from agents.kernel.proposals import (
    DecideAgain,
    ProposalKind,
    beside_requests,
    is_beside,
    proposal_kind,
    run_request_kind,
    run_request_kinds,
)
from agents.models import ApprovalKind, ApprovalRequest, Run, ToolCall
from agents.policy import judge
from agents.review.json_text import size_of
from agents.selectors.visible import approvals_for
from agents.services.approvals.asking import ask_again
from agents.services.approvals.grants import GrantTerms, give_grant
from agents.services.approvals.rights import check_right
from agents.services.audit import Change, record
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.runs.wake import lock_run, wake_run
from agents.spec import AgentSpec
from agents.states import (
    APPROVAL_TRANSITIONS,
    TOOL_CALL_TRANSITIONS,
    ApprovalStatus,
    Decision,
    RunStatus,
    ToolCallStatus,
    WaitReason,
    check_transition,
)
from agents.structured_output.levels import MOST_LEVELS, nests_too_deep

EDIT_CHARACTERS = 4_000_000
"""The limit of an edited input."""

InputCheck = Callable[[AgentSpec, str, dict[str, Any]], str | None]
"""(agent, tool, input) → the problem of the input, None if it is valid."""


@dataclass(frozen=True)
class DecisionRequest:
    """A person's decision. `digest` names the data that the person saw.

    None is for doors that know requests by id only: an id always names the same digest. `input`
    belongs to `edit`: the whole input that runs instead, or `{"content": …}`, the whole text, for a
    proposal. The model receives `reason` on `reject`; on `respond` it is the tool's result.
    """

    decision: str
    digest: str | None = None
    input: dict[str, Any] | None = None
    reason: str = ""
    always: GrantTerms | None = None
    """With `approve`: further calls like this one need no approval."""


class _Changed(Exception):
    """The base of a proposal has changed since the request was shown."""

    def __init__(self, kind: ProposalKind) -> None:
        super().__init__(kind.name)
        self.kind = kind


def decide_approval(
    request_id: str,
    answer: DecisionRequest,
    *,
    by: AbstractBaseUser,
    check_input: InputCheck | None = None,
) -> ApprovalRequest:
    """Record a decision and, if no other request is pending, wake the run.

    If two people must approve, the first approval leaves the request pending. The change of an
    approved proposal is made here, in the same transaction. Without `check_input` an edited input
    is checked when it runs. After an error, the decision is not stored.

    Raises:
        NotFound: There is no such request that `by` may see.
        NotAllowed: `by` may not approve it, or not give the grant.
        Conflict: It is decided already or has expired, the run has ended, the digest is not the
            request's, or `by` has approved it before. Also if the base of a proposal has changed:
            then a new request replaces this one, if the change is still possible.
        InvalidRequest: The decision is not allowed, an edit has no input or an invalid one, a
            response has no text, or the terms of the grant are invalid.
    """
    with _asked_again(request_id):
        while True:
            try:
                return _decide(request_id, answer, by, check_input)
            except DecideAgain:
                continue


def check_answer(
    request_id: str,
    answer: DecisionRequest,
    *,
    by: AbstractBaseUser,
    check_input: InputCheck | None = None,
) -> None:
    """Raise the error that `decide_approval` would raise now, without recording the decision.

    The terms of a grant (`answer.always`) are not checked. One case writes: if the base of a
    proposal has changed, a new request replaces this one, as in `decide_approval`.
    """
    with _asked_again(request_id):
        request = _visible_request(request_id, by)
        _check(request, request.run, answer, by, check_input)


@contextmanager
def _asked_again(request_id: str) -> Iterator[None]:
    try:
        yield
    except _Changed as problem:
        kind = problem.kind
        message = kind.changed if _ask_again(request_id, kind) else kind.unfit
        raise Conflict(message, code="stale") from None


@transaction.atomic
def _ask_again(request_id: str, kind: ProposalKind) -> bool:
    """Replace the request of a proposal. Returns False if the change can no longer be applied."""
    request = ApprovalRequest.objects.get(pk=request_id)
    run = lock_run(request.run_id)
    request = ApprovalRequest.objects.select_for_update().get(pk=request_id)
    waits = run.status == RunStatus.WAITING or is_beside(request)
    if request.status != ApprovalStatus.PENDING or not waits:
        return True  # another person was faster
    return ask_again(request, kind) is not None


def _visible_request(request_id: str, by: AbstractBaseUser) -> ApprovalRequest:
    request = approvals_for(by).filter(pk=request_id).first()
    if request is None:
        raise NotFound(f"There is no request {request_id!r} that you may decide.")
    return request


@transaction.atomic
def _decide(
    request_id: str, answer: DecisionRequest, by: AbstractBaseUser, check_input: InputCheck | None
) -> ApprovalRequest:
    request = _visible_request(request_id, by)
    if request.status != ApprovalStatus.PENDING:
        check_decision(request, answer)  # raises an error, without waiting for a lock
    kind = run_request_kind(request)
    locked = kind.lock(request) if kind is not None else {request.run_id: lock_run(request.run_id)}
    run = locked[request.run_id]
    request = ApprovalRequest.objects.select_for_update().get(pk=request_id)
    _check(request, run, answer, by, check_input)
    if (
        answer.decision == Decision.APPROVE
        and request.approvals_needed > 1
        and request.first_approved_at is None
    ):
        return _approve_first(request, by)
    return _record(request, run, answer, by, locked)


def _check(
    request: ApprovalRequest,
    run: Run,
    answer: DecisionRequest,
    by: AbstractBaseUser,
    check_input: InputCheck | None,
) -> None:
    check_decision(request, answer)
    about_run = run_request_kind(request)
    # While a request about a run is pending, its subagents may wait instead of the run itself.
    waits = run.status == RunStatus.WAITING or about_run is not None
    if (run.has_ended or not waits) and not is_beside(request):
        raise Conflict(f"The run is {run.status}: there is nothing to decide.", code="stale")
    check_right(request, run, answer.decision, by)
    if answer.decision == Decision.EDIT and request.kind == ApprovalKind.TOOL:
        _check_edited_input(request, run, answer, check_input)
    approves = answer.decision in (Decision.APPROVE, Decision.EDIT)
    if answer.decision == Decision.EDIT and about_run is not None:
        about_run.check_edit(request, answer.input)
    kind = proposal_kind(request)
    if approves and kind is not None:
        if answer.decision == Decision.EDIT:
            kind.check_edit(request, answer.input)
        if not kind.is_current(request):
            raise _Changed(kind)


def check_decision(request: ApprovalRequest, answer: DecisionRequest) -> None:
    """Raise `Conflict` if the request cannot be decided now, `InvalidRequest` for a bad answer."""
    if answer.digest is not None and answer.digest != request.digest:
        raise Conflict("The request has changed. Reload it and decide again.", code="stale")
    if request.status != ApprovalStatus.PENDING:
        raise Conflict(f"The request is {request.status} already.", code="stale")
    if request.expires_at is not None and request.expires_at <= timezone.now():
        raise Conflict("The request has expired.", code="expired")
    if not _is_known(request) and answer.decision != Decision.REJECT:
        raise Conflict(
            f"The feature of this request ({request.kind}) is not installed. Reject the request.",
            code="stale",
        )
    if answer.decision not in request.allowed_decisions:
        allowed = ", ".join(request.allowed_decisions)
        raise InvalidRequest(f"{answer.decision!r} is not one of the decisions here: {allowed}.")
    if answer.decision != Decision.EDIT and answer.input is not None:
        # An approval runs exactly the input that was shown.
        raise InvalidRequest("`input` is only allowed with the decision `edit`.")
    if answer.decision == Decision.EDIT and not isinstance(answer.input, dict):
        raise InvalidRequest("An edit requires `input`: the complete input that runs instead.")
    if size_of(answer.input, EDIT_CHARACTERS) > EDIT_CHARACTERS:
        raise InvalidRequest(
            f"The edited input has more than {EDIT_CHARACTERS:,} characters: shorten it."
        )
    if answer.decision == Decision.RESPOND and not answer.reason.strip():
        raise InvalidRequest("An answer requires `reason`: the text of the tool's result.")
    if answer.always is not None and answer.decision != Decision.APPROVE:
        raise InvalidRequest("`always` is only allowed with the decision `approve`.")
    if answer.always is not None and request.approvals_needed > 1:
        raise InvalidRequest("Calls that require two approvers cannot be allowed by a grant.")
    check_transition(APPROVAL_TRANSITIONS, request.status, ApprovalStatus.DECIDED)


def _is_known(request: ApprovalRequest) -> bool:
    """Return whether the feature that created the request is installed."""
    kind = proposal_kind(request) or run_request_kind(request)
    return request.kind == ApprovalKind.TOOL or kind is not None


def _check_edited_input(
    request: ApprovalRequest, run: Run, answer: DecisionRequest, check_input: InputCheck | None
) -> None:
    """Raise `InvalidRequest` if an edited input does not fit the tool, or if a rule denies it."""
    assert request.tool_call is not None
    assert answer.input is not None
    if nests_too_deep(answer.input):
        raise InvalidRequest(f"The input nests deeper than {MOST_LEVELS} levels.")
    spec = AgentSpec.model_validate(run.spec)
    problem = check_input(spec, request.tool, answer.input) if check_input else None
    if problem is not None:
        raise InvalidRequest(problem)
    verdict = judge(spec, request.tool, request.tool_call.effect, answer.input)
    if verdict.action == "deny":
        reason = f": {verdict.reason}" if verdict.reason else "."
        raise InvalidRequest(f"The policy denies this input ({verdict.source}){reason}")


def _approve_first(request: ApprovalRequest, by: AbstractBaseUser) -> ApprovalRequest:
    request.first_approver_id = by.pk
    request.first_approved_at = timezone.now()
    request.save(update_fields=["first_approver", "first_approved_at"])
    seconded = ApprovalSeconded(approval_id=request.id, by=by.get_username(), still_needed=1)
    if not request.run.has_ended:
        append_events(request.run_id, [seconded])
    record("approval.first_approved", request, name=request.tool, by=by)
    return request


def _record(
    request: ApprovalRequest,
    run: Run,
    answer: DecisionRequest,
    by: AbstractBaseUser,
    locked: Mapping[str, Run],
) -> ApprovalRequest:
    request.status = ApprovalStatus.DECIDED
    request.decision = answer.decision
    request.edited_input = answer.input
    request.reason = answer.reason
    request.decided_by_id = by.pk
    request.decided_at = timezone.now()
    request.save()
    # An edited input may contain a secret: it is stored in the request only, not in the log.
    changes: dict[str, Change] = {
        "decision": (None, answer.decision),
        "digest": (None, request.digest),
    }
    about_run = run_request_kind(request)
    if about_run is not None:
        changes["input"] = (request.input, answer.input or request.input)
    # Others read both logs.
    told = "" if request.is_private else answer.reason
    record("approval.decided", request, name=request.tool, by=by, changes=changes, note=told)
    grant = give_grant(request, run, answer.always, by=by) if answer.always is not None else None
    call, kind = request.tool_call, proposal_kind(request)
    fields = kind.event_fields(request) if kind is not None else {}
    decided = ApprovalDecided(
        approval_id=request.id,
        call_id=call.call_id if call else None,
        kind=request.kind,
        decision=answer.decision,
        reason=preview(told),
        by=by.get_username(),
        path=fields.get("path", OMITTED),
        grant_id=grant.id if grant is not None else OMITTED,
    )
    drafts: list[EventDraft] = [decided]
    if kind is not None and answer.decision in (Decision.APPROVE, Decision.EDIT):
        try:
            drafts += kind.carry_out(request, call, by.pk)
        except Conflict:  # another connection was faster since `is_current`
            raise _Changed(kind) from None
    elif call is not None:
        drafts += _apply_to_call(call, answer)
    if not run.has_ended:
        append_events(run.id, drafts)
    if is_beside(request):
        return request
    if about_run is not None:
        about_run.carry_out(request, locked)
    elif run.wait_reason == request.kind:
        wake_run(run, "the feature that asked is not installed any more")
    else:
        wake_if_decided(run)
    return request


def wake_if_decided(run: Run) -> None:
    """Wake a locked run that waits for approvals, if none of its calls has a pending request."""
    pending = ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING)
    waiting = (
        pending.exclude(kind__in=run_request_kinds().keys()).exclude(beside_requests()).exists()
    )
    if not waiting and run.wait_reason == WaitReason.APPROVAL:
        wake_run(run, "approvals decided")


def _apply_to_call(call: ToolCall, answer: DecisionRequest) -> list[EventDraft]:
    if answer.decision in (Decision.APPROVE, Decision.EDIT):
        check_transition(TOOL_CALL_TRANSITIONS, call.status, ToolCallStatus.APPROVED)
        call.status = ToolCallStatus.APPROVED
        if answer.decision == Decision.EDIT:
            call.edited_input = dump(answer.input)
        call.save()
        return []
    if answer.decision == Decision.REJECT:
        reason = f" Reason: {answer.reason}" if answer.reason.strip() else ""
        text = f"A person rejected this call; it was not made.{reason}"
        return reject_call(call, text, code="rejected", reason=answer.reason)
    check_transition(TOOL_CALL_TRANSITIONS, call.status, ToolCallStatus.ANSWERED)
    call.status = ToolCallStatus.ANSWERED
    call.is_error = False
    call.code = ""
    call.result = dump(answer.reason)
    call.finished_at = timezone.now()
    call.save()
    return [ToolCompleted(call_id=call.call_id, output=preview(answer.reason))]


def reject_call(call: ToolCall, text: str, *, code: str, reason: str) -> list[EventDraft]:
    """End a waiting call that will not run, and return the events to write.

    `text` is the result for the model, `code` is for programs, and `reason` for people.
    """
    check_transition(TOOL_CALL_TRANSITIONS, call.status, ToolCallStatus.REJECTED)
    call.status = ToolCallStatus.REJECTED
    call.is_error = True
    call.code = code
    call.result = dump(text)
    call.finished_at = timezone.now()
    call.save()
    return [ToolDenied(call_id=call.call_id, reason=preview(reason))]
