"""Add waiting messages to a run between two turns, or stop the run between two calls."""

from __future__ import annotations

from functools import partial

from agents.features.steering.actions import (
    REASON,
    SOURCES,
    forget,
    messages_to_join,
    request_for,
    stop_instead,
    stopped_by,
)
from agents.kernel.middleware import (
    Join,
    LoadContext,
    Refusal,
    RunContext,
    ToolCallRequest,
    ToolHandler,
)
from agents.kernel.tool_calls import ToolResult
from agents.middleware.base import Middleware

NOT_MADE = "The user has sent another message before this call, so it was not made."
CODE = "superseded"
LONGEST_WAIT = 60.0
"""Seconds. The run's worker finds the request to cancel within one."""


class Watched:
    """The state of a run that can have waiting messages: not a subagent's."""


class SteeringMiddleware(Middleware):
    """Adds the messages that the owner sends now to the run, before its next model call.

    If a message needs its own run, the remaining calls of the turn are refused, and the run
    is cancelled before its next turn. The running call keeps its result, which the next message of
    the conversation can use.
    """

    name = "steering"

    def load(self, context: LoadContext) -> Watched | None:
        return Watched() if context.row.parent_id is None else None

    async def check_call(self, run: RunContext, call: ToolCallRequest) -> Refusal | None:
        """Refuse a call before an approval of it is requested."""
        if not await _stops(run):
            return None
        return Refusal(message=NOT_MADE, reason=REASON, code=CODE)

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        """Omit a call that was allowed before the request."""
        if not await _stops(run):
            return await handler(call)
        return ToolResult(NOT_MADE, is_error=True, code=CODE)

    async def before_request(self, run: RunContext) -> Join | None:
        request = await run.in_database(request_for, run.row.pk)
        if request is None:
            return None
        if request.until is None:
            await _stop(run, request.by)
            return None
        if run.turn == 0:
            return None  # the message joins after the first reply, or starts its own run
        found = await run.in_database(messages_to_join, run.row, request.until)
        joining: list[str] = []
        for waiting, text in found:
            if not await run.accepts_message(text):
                if not joining:
                    await _stop(run, request.by)
                break
            joining.append(waiting)
        return Join(joining, request.by, partial(forget, run.row.pk, request.until))


async def _stops(run: RunContext) -> bool:
    if run.row.source not in SOURCES:
        return False
    return await run.in_database(stopped_by, run.row.pk) is not None


async def _stop(run: RunContext, by: str) -> None:
    # Without a check of the fencing token: the request is valid for every worker.
    await run.in_database(stop_instead, run.row.pk, by)
    await run.pause(LONGEST_WAIT)


MIDDLEWARE = (SteeringMiddleware(),)
