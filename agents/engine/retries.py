"""Making a call again after an error that may pass by itself, where the agent's policy says so.

Only calls that just read: whatever may have changed something is never made again by the engine.
"""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase

from agents.engine.dispatch import attempt_tool
from agents.engine.journal import write_events
from agents.engine.session import Session
from agents.events.catalogue.guardrails import ToolRetried
from agents.events.preview import preview
from agents.kernel.middleware import ToolCallRequest
from agents.middleware.base import ToolResult
from agents.models import Effect
from agents.spec import AgentSpec, RetryRule

TRANSIENT = frozenset({"timeout", "connection"})
"""Codes of results that the same call may not come to when it is made again."""
MAX_PAUSE_SECONDS = 60.0


def retry_rule(spec: AgentSpec, tool: str) -> RetryRule | None:
    """The first rule that fits the tool."""
    return next((rule for rule in spec.tool_retries if fnmatchcase(tool, rule.tool)), None)


async def with_tool_retries(session: Session, request: ToolCallRequest) -> ToolResult:
    """Make a call, and again where that may help. Cancelled when the run is stopped."""
    call = request.row
    while True:
        result = await attempt_tool(session, request)
        if not result.is_error or result.code not in TRANSIENT or request.effect != Effect.READ:
            return result
        rule = retry_rule(session.spec, call.tool)
        if rule is None or call.attempt >= rule.attempts:
            return result
        pause = min(rule.backoff * 2.0 ** (call.attempt - 1), MAX_PAUSE_SECONDS)
        retried = ToolRetried(
            call_id=call.call_id,
            attempt=call.attempt,
            code=result.code,
            message=preview(str(result.content)),
            retry_in=round(pause, 2),
        )
        await session.database.share(write_events, session.writer, [retried])
        await asyncio.sleep(pause)
