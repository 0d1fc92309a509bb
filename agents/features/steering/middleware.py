"""Stop a run between two calls if its owner sends a waiting message now."""

from __future__ import annotations

from agents.features.steering.actions import REASON, SOURCES, requested_by
from agents.kernel.middleware import (
    LoadContext,
    Refusal,
    RunContext,
    ToolCallRequest,
    ToolHandler,
)
from agents.kernel.tool_calls import ToolResult
from agents.middleware.base import Middleware
from agents.services.runs.control import cancel_run

NOT_MADE = "The user has sent another message before this call, so it was not made."
CODE = "superseded"
LONGEST_WAIT = 60.0
"""Seconds. The run's worker finds the request to cancel within one."""


class Watched:
    """The state of a run that can be stopped."""


class SteeringMiddleware(Middleware):
    """Refuses the remaining calls of the turn, and cancels the run before its next turn.

    The running call keeps its result, which the next message of the conversation can use.
    """

    name = "steering"

    def load(self, context: LoadContext) -> Watched | None:
        row = context.row
        return Watched() if row.parent_id is None and row.source in SOURCES else None

    async def check_call(self, run: RunContext, call: ToolCallRequest) -> Refusal | None:
        """Refuse a call before an approval of it is requested."""
        if await run.in_database(requested_by, run.row.pk) is None:
            return None
        return Refusal(message=NOT_MADE, reason=REASON, code=CODE)

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        """Omit a call that was allowed before the request."""
        if await run.in_database(requested_by, run.row.pk) is None:
            return await handler(call)
        return ToolResult(NOT_MADE, is_error=True, code=CODE)

    async def before_model(self, run: RunContext) -> None:
        by = await run.in_database(requested_by, run.row.pk)
        if by is not None:
            # Without a check of the fencing token: the request is valid for every worker.
            await run.in_database(_cancel, run.row.pk, by)
            await run.pause(LONGEST_WAIT)


def _cancel(run_id: str, by: str) -> None:
    cancel_run(run_id, by=by, reason=REASON)


MIDDLEWARE = (SteeringMiddleware(),)
