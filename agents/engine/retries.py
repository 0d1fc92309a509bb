"""Making a call again after an error that may pass by itself, where the agent's policy says so.

Only calls that just read: whatever may have changed something is never made again by the engine.
"""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase
from typing import Any

from django.db import connection

from agents.engine.errors import FenceLost
from agents.engine.journal import write_events
from agents.engine.journal_rows import Call, Writer
from agents.engine.session import Session
from agents.engine.sql import TOOL_CALL
from agents.events.append import EventDraft
from agents.events.catalogue.guardrails import ToolRetried
from agents.events.catalogue.tool_calls import ToolStarted
from agents.events.preview import preview
from agents.middleware.base import Tool, ToolResult
from agents.models import Effect
from agents.spec import AgentSpec, RetryRule
from agents.states import ToolCallStatus

TRANSIENT = frozenset({"timeout", "connection"})
"""Codes of results that the same call may not come to when it is made again."""
MAX_PAUSE_SECONDS = 60.0


def retry_rule(spec: AgentSpec, tool: str) -> RetryRule | None:
    """The first rule that fits the tool."""
    return next((rule for rule in spec.tool_retries if fnmatchcase(tool, rule.tool)), None)


async def wait_for_retry(session: Session, call: Call, tool: Tool[Any], result: ToolResult) -> bool:
    """Whether the call is to be made again: then it waits, and the attempt is in the journal.

    Cancelled with the call's task when the run is stopped.
    """
    if not result.is_error or result.code not in TRANSIENT or tool.effect != Effect.READ:
        return False
    rule = retry_rule(session.spec, call.tool)
    if rule is None or call.attempt >= rule.attempts:
        return False
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
    started = ToolStarted(call_id=call.call_id, attempt=call.attempt + 1)
    await session.database.share(write_attempt, session.writer, call, [started])
    call.attempt += 1
    return True


def write_attempt(writer: Writer, call: Call, drafts: list[EventDraft]) -> None:
    """Commit that a started call is about to be made once more."""
    write_events(writer, drafts)
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{TOOL_CALL}" SET attempt = attempt + 1'
            " WHERE run_id = %s AND turn = %s AND position = %s AND status = %s AND effect = %s",
            [
                writer.run_id,
                call.turn,
                call.position,
                ToolCallStatus.STARTED.value,
                Effect.READ.value,
            ],
        )
        if cursor.rowcount != 1:
            raise FenceLost(f"{writer.run_id}: call {call.call_id} is not started any more")
