"""Descriptions of inputs for the people who decide, for example the name that belongs to an id."""

from __future__ import annotations

import asyncio
import logging

from django.db import InterfaceError, InternalError, OperationalError

from agents.engine.calls.context import CallContext
from agents.engine.errors import FenceLost, Stopped
from agents.engine.gate import CheckedCall
from agents.engine.session import Session
from agents.states import ToolCallStatus

logger = logging.getLogger(__name__)

DESCRIPTION_SECONDS = 15.0
MOST_CHARACTERS = 12_000
"""Enough for a line about each of 50 mails."""


async def describe(session: Session, item: CheckedCall) -> str:
    """Return the tool's description of the input, at most `MOST_CHARACTERS` characters.

    Empty if the tool has no description, if it fails or takes too long, or if the call already
    waits for a decision.
    """
    tool = item.tool
    if tool.describe is None or item.call.status == ToolCallStatus.WAITING:
        return ""
    context = CallContext(session, item.call, DESCRIPTION_SECONDS)
    try:
        with session.handle.interruptible():
            async with asyncio.timeout(DESCRIPTION_SECONDS):
                found = await tool.describe(context, item.given)
    except TimeoutError:
        logger.warning(
            "a description took too long",
            extra={"run_id": session.writer.run_id, "tool": tool.name},
        )
        return ""
    except (OperationalError, InterfaceError, InternalError, FenceLost, Stopped):
        raise
    except Exception:  # a tool is third-party code
        logger.exception(
            "a description failed", extra={"run_id": session.writer.run_id, "tool": tool.name}
        )
        return ""
    return found[:MOST_CHARACTERS]
