"""Checks before a tool call runs: its input, the gate's permission and the middleware."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from agents.engine.calls.outcomes import store_outcomes
from agents.engine.calls.results import finished_event
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.gate import CheckedCall, Starting, Unfit
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Outcome, Writer, write_started
from agents.events.append import dump
from agents.events.catalogue.tool_calls import ToolDenied, ToolStarted
from agents.events.event import OMITTED
from agents.kernel.middleware import Refusal, ToolCallRequest
from agents.kernel.park import Park
from agents.middleware.base import Tool
from agents.middleware.inputs import checked_input
from agents.policy import Verdict
from agents.states import ToolCallStatus


def check_call(session: Session, name: str, raw_input: Any) -> tuple[Tool[Any], BaseModel] | str:
    """Return the tool and the validated input, or the problem as a text for the model."""
    return checked_input(session.toolset, name, raw_input)


def judge_call(session: Session, tool: Tool[Any], given: BaseModel, raw_input: Any) -> Verdict:
    """Return whether a call is allowed, denied or needs approval, and why.

    Besides the gate, a feature can deny the call.
    """
    verdict = session.gate.judge(tool, given, raw_input)
    refused = None if verdict.action == "deny" else _refusal(session, tool.name)
    return refused or verdict


def _refusal(session: Session, tool: str) -> Verdict | None:
    """Return the verdict with which a feature denies the tool, or None."""
    for part in session.parts:
        verdict = part.refusal(tool, list(session.toolset.tools), session.known_tools)
        if verdict is not None:
            return verdict
    return None


async def prepare_call(session: Session, call: Call) -> CheckedCall | None:
    """Return `call` with the data to run it now; None if the call has ended or must wait.

    A call that is invalid, denied or refused ends here, with an error as its result.
    """
    runnable = (ToolCallStatus.PENDING, ToolCallStatus.APPROVED, ToolCallStatus.STARTED)
    if call.status not in runnable or call.place in session.waits:
        return None
    if session.gate.awaits_decision(call):
        return None
    raw_input = json.loads(call.edited_input or call.input)
    checked = check_call(session, call.tool, raw_input)
    if isinstance(checked, str):
        # The model's own calls are checked when they arrive. This call has an input that a person
        # has edited, or a tool that the agent no longer has.
        await refuse_call(session, call, checked, "invalid_input")
        return None
    item = CheckedCall(call, *checked, raw_input)
    if call.status == ToolCallStatus.STARTED:
        return None if await _is_blocked(session, item) else item
    verdict = judge_call(session, *checked, raw_input)
    if verdict.action == "deny":
        await _deny(session, call, verdict)
        return None
    if await _is_blocked(session, item):
        return None
    permitted = await session.gate.permit(item, verdict)
    if isinstance(permitted, Unfit):
        await refuse_call(session, call, permitted.message, permitted.code)
        return None
    return item if permitted else None


async def ask_about(session: Session, calls: Sequence[Call]) -> Park | None:
    """Request approval for calls, and return how the run waits for the decisions.

    Returns None if a call has ended instead.
    """
    items = []
    for call in calls:
        raw_input = json.loads(call.edited_input or call.input)
        checked = check_call(session, call.tool, raw_input)
        assert not isinstance(checked, str)  # `prepare_call` has ended calls with a problem
        items.append(CheckedCall(call, *checked, raw_input))
    asked = await session.gate.ask(items)
    if isinstance(asked, Unfit):
        await refuse_call(session, asked.call, asked.message, asked.code)
        return None
    return asked


async def refuse_call(session: Session, call: Call, message: str, code: str) -> None:
    """End a call that cannot run, with an error result for the model."""
    started = call.status == ToolCallStatus.STARTED
    status = ToolCallStatus.FAILED if started else ToolCallStatus.INVALID
    outcome = Outcome(call, status, result=json.dumps(message), is_error=True, code=code)
    outcome.events.append(finished_event(call, message, is_error=True, code=code))
    await store_outcomes(session, [outcome])


async def _is_blocked(session: Session, item: CheckedCall) -> bool:
    """Return whether the middleware blocks a call, which then ends.

    The middleware checks a call twice: before an approval request, and again before the call runs.
    """
    if session.chain.check_call:
        tool = item.tool
        request = ToolCallRequest(item.call, tool.effect, leaves_machine=tool.leaves_machine)
        for middleware in session.chain.check_call:
            with session.handle.interruptible():
                refusal = await middleware.check_call(session.context, request)
            if refusal is not None:
                by = refusal.by or middleware.name
                await _block(session, item.call, replace(refusal, by=by))
                return True
    return False


async def _block(session: Session, call: Call, refusal: Refusal) -> None:
    started = call.status == ToolCallStatus.STARTED
    status = ToolCallStatus.FAILED if started else ToolCallStatus.DENIED
    outcome = Outcome(call, status, dump(refusal.message), is_error=True, code=refusal.code)
    outcome.events += refusal.events
    outcome.events.append(ToolDenied(call_id=call.call_id, reason=refusal.reason, by=refusal.by))
    reached(CrashPoint.BLOCKED)
    await store_outcomes(session, [outcome])


async def _deny(session: Session, call: Call, verdict: Verdict) -> None:
    reason = f" Reason: {verdict.reason}" if verdict.reason else ""
    message = f"The policy does not allow this call; it was not made.{reason}"
    outcome = Outcome(call, ToolCallStatus.DENIED, dump(message), is_error=True, code="denied")
    denied = ToolDenied(call_id=call.call_id, reason=verdict.reason, by=verdict.source)
    outcome.events.append(denied)
    await store_outcomes(session, [outcome])


def start_call(writer: Writer, call: Call, starting: Starting, grant_id: str = "") -> bool:
    """Store that `call` is about to run. The caller commits the transaction, then makes the call.

    `starting` checks the call's permission, and `grant_id` is the grant that allows the call.
    Returns False, and stores nothing, if the permission is no longer valid. Raises `FenceLost`.
    """
    if not starting():
        return False
    started = ToolStarted(
        call_id=call.call_id, attempt=call.attempt + 1, grant_id=grant_id or OMITTED
    )
    write_started(writer, call, [started])
    return True
