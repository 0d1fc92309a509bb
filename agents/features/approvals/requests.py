"""Approval requests for calls, and the check that an approval is still valid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils import timezone

from agents.engine.storage.journal import Call, Writer, check_fence
from agents.events.append import EventDraft, append_events, dump
from agents.events.catalogue.tool_calls import ToolFailed
from agents.events.preview import preview
from agents.kernel.park import Locked, Park, Suspend
from agents.kernel.proposals import Proposed, beside_requests
from agents.middleware.context import Preview
from agents.models import ApprovalRequest, Run, Thread, ToolCall
from agents.policy import Verdict
from agents.services.approvals.asking import CHANGED, ask_about_call, ask_about_proposal, digest_of
from agents.services.errors import InvalidRequest
from agents.states import (
    TOOL_CALL_TRANSITIONS,
    ApprovalStatus,
    ToolCallStatus,
    WaitReason,
    check_transition,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A call that needs approval. `proposed` is its proposal, if it makes one.

    `preview` is the result of its trial, and `about` the tool's description of the input.
    """

    call: Call
    verdict: Verdict
    proposed: Proposed | None = None
    preview: Preview | None = None
    about: str = ""


def _calls_of(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Return the calls in the form for middleware."""
    return [
        {
            "call_id": question.call.call_id,
            "tool": question.call.tool,
            "input": json.loads(question.call.edited_input or question.call.input),
        }
        for question in questions
    ]


def wait_for_people(questions: Sequence[Question], family: str = "") -> Park:
    """Return a park that requests approval for each call.

    Invariant 4: the digest is computed here, after all calls of the turn that need no approval have
    finished. It covers the call, its input, the workspace generation and `family`, the state that
    the run shares with others.
    """
    settle = partial(_ask_all, questions, family)
    return Park(WaitReason.APPROVAL, settle, calls=_calls_of(questions))


def _ask_all(questions: Sequence[Question], family: str, locked: Locked) -> Suspend | None:
    run = locked.run
    rows = {
        (row.turn, row.position): row
        for row in ToolCall.objects.filter(run=run, turn=questions[0].call.turn)
    }
    drafts: list[EventDraft] = []
    for question in questions:
        row = rows[question.call.turn, question.call.position]
        if not row.approvals.filter(status=ApprovalStatus.PENDING).exists():
            drafts.append(_ask(run, row, question, family))
    asked = list(
        ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING)
        .exclude(beside_requests())
        .values_list("id", flat=True)
    )
    if asked:
        return Suspend({"approval_ids": asked}, drafts)
    # The base of a proposal has just changed, and no question is left.
    append_events(run.pk, drafts)
    return None


def _ask(run: Run, row: ToolCall, question: Question, family: str) -> EventDraft:
    verdict = question.verdict
    earlier = row.approvals.exclude(decided_by=None).exists()
    prompt = " ".join(filter(None, (CHANGED if earlier else verdict.reason, question.about)))
    proposed = question.proposed
    if proposed is None:
        generations = Thread.objects.values_list("workspace_generation", flat=True)
        draft = ask_about_call(
            run, row, verdict.terms, prompt=prompt, generation=generations.get(pk=run.thread_id),
            preview=question.preview, family=family,
        )  # fmt: skip
    else:
        try:
            proposal = proposed.kind.propose(run, proposed.change)
        except InvalidRequest as problem:
            return _refuse(row, problem.message, proposed.kind.refused)
        draft = ask_about_proposal(run, row, proposed.kind, proposal, verdict.terms, prompt=prompt)
    if row.status != ToolCallStatus.WAITING:
        check_transition(TOOL_CALL_TRANSITIONS, row.status, ToolCallStatus.WAITING)
        row.status = ToolCallStatus.WAITING
        row.save(update_fields=["status"])
    return draft


def _refuse(row: ToolCall, message: str, code: str) -> EventDraft:
    check_transition(TOOL_CALL_TRANSITIONS, row.status, ToolCallStatus.INVALID)
    row.status = ToolCallStatus.INVALID
    row.is_error = True
    row.code = code
    row.result = dump(message)
    row.finished_at = timezone.now()
    row.save()
    return ToolFailed(call_id=row.call_id, message=preview(message), code=row.code)


def approval_is_stale(writer: Writer, call: Call, family: str) -> bool:
    """Return whether the latest approval of a call is missing or out of date.

    An approval that is out of date is superseded. Runs in the transaction that would commit
    `started`, and locks the thread. `family` is the result of `family_state`. Raises `FenceLost`.
    """
    check_fence(writer)
    request = (
        ApprovalRequest.objects.filter(
            tool_call__run_id=writer.run_id,
            tool_call__turn=call.turn,
            tool_call__position=call.position,
            status=ApprovalStatus.DECIDED,
        )
        .order_by("-created_at")
        .first()
    )
    if request is None:
        return True
    # The thread's row is locked: a sibling or another run of the thread waits, or was first.
    generation = (
        Thread.objects.select_for_update(no_key=True)
        .values_list("workspace_generation", flat=True)
        .get(pk=writer.thread_id)
    )
    now = digest_of(request.tool, request.input, generation, request.preview, family)
    if now == request.digest:
        return False
    request.status = ApprovalStatus.SUPERSEDED
    request.save(update_fields=["status"])
    return True
