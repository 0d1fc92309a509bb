"""Calls with a trial: it is shown before the decision, and repeated before the call is made.

A trial leaves no changes, so it can be repeated at any time, also after a crash.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

from django.db import InterfaceError, InternalError, OperationalError
from pydantic import BaseModel

from agents.engine.calls.admission import Ready, check_call, question_of, refuse_call
from agents.engine.calls.context import CallContext
from agents.engine.calls.park import Question
from agents.engine.errors import FenceLost, Stopped
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Writer, check_fence
from agents.middleware.base import Tool, ToolResult, error
from agents.middleware.context import Preview
from agents.models import ApprovalRequest
from agents.states import (
    APPROVAL_TRANSITIONS,
    OPEN_CALLS,
    ApprovalStatus,
    ToolCallStatus,
    check_transition,
)

logger = logging.getLogger(__name__)

TRIAL_SECONDS = 300.0
"""The limits of the systems that a tool accesses also apply, and are usually shorter."""


async def questions_about(session: Session, calls: Sequence[Call]) -> list[Question] | None:
    """Return the questions about all open calls; None if a trial failed, and its call has ended."""
    questions = []
    for call in calls:
        if call.status not in OPEN_CALLS:
            continue
        question = question_of(session, call)
        checked = check_call(session, call.tool, json.loads(call.edited_input or call.input))
        assert not isinstance(checked, str)  # `prepare_call` has ended such calls
        if checked[0].trial is not None and call.status != ToolCallStatus.WAITING:
            shown = await _try(session, call, *checked)
            if isinstance(shown, ToolResult):
                await refuse_call(session, call, str(shown.content), shown.code)
                return None
            question = Question(call, question.verdict, question.proposed, shown)
        questions.append(question)
    return questions


async def still_as_shown(session: Session, item: Ready) -> bool:
    """Return whether an approved call would still do the same. If not, it needs a new approval."""
    call = item.call
    place = (call.turn, call.position)
    request = await session.database.run(_approved, session.writer, call)
    approved = request.preview if request is not None else None
    if approved is not None:
        shown = await _try(session, call, item.tool, item.given)
        if isinstance(shown, ToolResult):
            await refuse_call(session, call, str(shown.content), shown.code)
            return False
        if shown["digest"] == approved["digest"]:
            session.approved[place] = approved
            return True
    await session.database.run(_supersede, session.writer, call)
    session.stale.add(place)
    return False


async def _try(
    session: Session, call: Call, tool: Tool[Any], given: BaseModel
) -> Preview | ToolResult:
    assert tool.trial is not None
    context = CallContext(session, call, min(tool.time_limit, TRIAL_SECONDS))
    try:
        with session.handle.interruptible():
            async with asyncio.timeout(TRIAL_SECONDS):
                return await tool.trial(context, given)
    except TimeoutError:
        return error(f"{call.tool} could not be tried: it took too long.", "timeout")
    except (OperationalError, InterfaceError, InternalError, FenceLost, Stopped):
        raise
    except Exception as problem:  # a tool is third-party code
        logger.exception(
            "a trial failed", extra={"run_id": session.writer.run_id, "tool": call.tool}
        )
        return error(f"{call.tool} could not be tried: {type(problem).__name__}.", "exception")


def _approved(writer: Writer, call: Call) -> ApprovalRequest | None:
    return (
        ApprovalRequest.objects.filter(
            tool_call__run_id=writer.run_id,
            tool_call__turn=call.turn,
            tool_call__position=call.position,
            status=ApprovalStatus.DECIDED,
        )
        .order_by("-created_at")
        .first()
    )


def _supersede(writer: Writer, call: Call) -> None:
    check_fence(writer)
    request = _approved(writer, call)
    if request is not None:
        check_transition(APPROVAL_TRANSITIONS, request.status, ApprovalStatus.SUPERSEDED)
        request.status = ApprovalStatus.SUPERSEDED
        request.save(update_fields=["status"])
