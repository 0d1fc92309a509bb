"""Admission of calls: check the input, apply the policy, and look for a grant."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from agents.engine.calls.outcomes import store_outcomes
from agents.engine.calls.park import Question, approval_is_stale
from agents.engine.calls.results import finished_event
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Outcome, Writer, write_started
from agents.events.append import dump
from agents.events.catalogue.tool_calls import ToolDenied, ToolStarted
from agents.events.event import OMITTED
from agents.kernel.middleware import Refusal, ToolCallRequest
from agents.kernel.proposals import Proposed
from agents.middleware.base import Tool
from agents.middleware.inputs import checked_input, input_names
from agents.models import ToolCall
from agents.policy import Verdict, judge
from agents.services.approvals.grants import find_grant, use_grant
from agents.services.errors import InvalidRequest
from agents.states import ToolCallStatus


@dataclass(slots=True)
class Ready:
    """A call that may run now, with its tool and its checked input."""

    call: Call
    tool: Tool[Any]
    given: BaseModel
    grant_id: str = ""


def check_call(session: Session, name: str, raw_input: Any) -> tuple[Tool[Any], BaseModel] | str:
    """Return the tool and its checked input, or the problem as text for the model."""
    return checked_input(session.toolset, name, raw_input)


def judge_call(
    session: Session, tool: Tool[Any], given: BaseModel, raw_input: Any
) -> tuple[Verdict, Proposed | None]:
    """Return the policy's verdict on a call, and the call's proposal, if it makes one."""
    proposed = tool.proposed(given)
    verdict = judge(
        session.spec,
        tool.name,
        tool.effect,
        raw_input,
        proposes=None if proposed is None else proposed.kind,
        tried=tool.trial is not None,
        reads=input_names(tool.input_model),
        asks=tool.asks,
    )
    refused = None if verdict.action == "deny" else _refusal(session, tool.name)
    return refused or verdict, proposed


def _refusal(session: Session, tool: str) -> Verdict | None:
    """Return the refusal of a tool by a part of a feature."""
    for part in session.parts:
        verdict = part.refusal(tool, list(session.toolset.tools), session.known_tools)
        if verdict is not None:
            return verdict
    return None


async def prepare_call(session: Session, call: Call) -> Ready | None:
    """Return `call` with the data to run it now; None if it has ended or must wait."""
    runnable = (ToolCallStatus.PENDING, ToolCallStatus.APPROVED, ToolCallStatus.STARTED)
    place = (call.turn, call.position)
    if call.status not in runnable or place in session.stale or place in session.waits:
        return None
    raw_input = json.loads(call.edited_input or call.input)
    checked = check_call(session, call.tool, raw_input)
    if isinstance(checked, str):
        # The model's own calls are checked when they arrive: this is a person's edit, or a tool
        # that the agent no longer has.
        await refuse_call(session, call, checked, "invalid_input")
        return None
    ready = Ready(call, *checked)
    if call.status == ToolCallStatus.STARTED:
        return None if await _is_blocked(session, ready) else ready
    verdict, proposed = judge_call(session, *checked, raw_input)
    if verdict.action == "deny":
        await _deny(session, call, verdict)
        return None
    if await _is_blocked(session, ready):
        return None
    if ready.tool.trial is not None and call.edited_input:
        # The trial was about the original call and not about a person's edit.
        message = "A person's edit cannot turn a call into one that writes: make the call yourself."
        await refuse_call(session, call, message, "invalid_input")
        return None
    if call.status == ToolCallStatus.APPROVED:
        if proposed is None:
            return ready
        # The decision on a proposal makes its change. This call was approved as something else.
        message = proposed.kind.no_tool.format(tool=call.tool)
        await refuse_call(session, call, message, "invalid_input")
        return None
    if proposed is not None:
        problem = await session.database.run(_problem_of, session.agent_id, proposed)
        if problem is not None:
            await refuse_call(session, call, problem, proposed.kind.refused)
        return None
    if ready.tool.trial is not None:
        return None  # a person checks its effect each time
    if verdict.action == "ask":
        reads = input_names(ready.tool.input_model)
        grant = await session.database.run(
            find_grant, session.run, call.tool, raw_input, verdict.terms, reads
        )
        if grant is None:
            return None
        ready.grant_id = grant.id
    return ready


def question_of(session: Session, call: Call) -> Question:
    raw_input = json.loads(call.edited_input or call.input)
    checked = check_call(session, call.tool, raw_input)
    assert not isinstance(checked, str)  # `prepare_call` has ended such calls
    verdict, proposed = judge_call(session, *checked, raw_input)
    return Question(call, verdict, proposed)


def _problem_of(agent_id: str, proposed: Proposed) -> str | None:
    """Return why a proposal is invalid, and needs no approval request; None if it is valid."""
    try:
        proposed.kind.propose(agent_id, proposed.change)
    except InvalidRequest as problem:
        return problem.message
    return None


async def refuse_call(session: Session, call: Call, message: str, code: str) -> None:
    """End a call that cannot run in its present form."""
    started = call.status == ToolCallStatus.STARTED
    status = ToolCallStatus.FAILED if started else ToolCallStatus.INVALID
    outcome = Outcome(call, status, result=json.dumps(message), is_error=True, code=code)
    outcome.events.append(finished_event(call, message, is_error=True, code=code))
    await store_outcomes(session, [outcome])


async def _is_blocked(session: Session, ready: Ready) -> bool:
    """Call the middleware's checks, before an approval request and again before the call."""
    if session.chain.check_call:
        tool = ready.tool
        request = ToolCallRequest(ready.call, tool.effect, leaves_machine=tool.leaves_machine)
        for item in session.chain.check_call:
            with session.handle.interruptible():
                refusal = await item.check_call(session.context, request)
            if refusal is not None:
                await _block(session, ready.call, replace(refusal, by=refusal.by or item.name))
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


def start_call(writer: Writer, call: Call, grant_id: str = "", family: str = "") -> bool:
    """Commit that `call` is about to run.

    Returns False, and starts nothing, if its approval is stale or its grant is no longer valid.
    """
    if call.status == ToolCallStatus.APPROVED and approval_is_stale(writer, call, family):
        return False
    if grant_id and not use_grant(grant_id):
        return False
    if grant_id:
        ToolCall.objects.filter(
            run_id=writer.run_id, turn=call.turn, position=call.position
        ).update(grant_id=grant_id)
    started = ToolStarted(
        call_id=call.call_id, attempt=call.attempt + 1, grant_id=grant_id or OMITTED
    )
    write_started(writer, call, [started])
    return True
