"""Calls with a trial: it is shown before the decision, and repeated before the call is made.

A trial leaves no changes, so it can be repeated at any time, also after a crash.
"""

from __future__ import annotations

import asyncio
import logging

from django.db import InterfaceError, InternalError, OperationalError

from agents.engine.calls.context import CallContext
from agents.engine.errors import FenceLost, Stopped
from agents.engine.gate import CheckedCall, Unfit
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Writer, check_fence
from agents.middleware.base import ToolResult
from agents.middleware.context import Preview
from agents.models import ApprovalRequest
from agents.states import APPROVAL_TRANSITIONS, ApprovalStatus, check_transition

logger = logging.getLogger(__name__)

TRIAL_SECONDS = 300.0
"""The limits of the systems that a tool accesses also apply, and are usually shorter."""


class Trials:
    """The trials of one claim."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.approved: dict[tuple[int, int], Preview] = {}
        """By calls about to be made: the approved result, which a new trial has confirmed."""

    async def make(self, item: CheckedCall) -> Preview | Unfit:
        """Return the result of a trial. A trial that fails ends its call."""
        call, tool = item.call, item.tool
        assert tool.trial is not None
        session = self._session
        context = CallContext(session, call, min(tool.time_limit, TRIAL_SECONDS))
        try:
            with session.handle.interruptible():
                async with asyncio.timeout(TRIAL_SECONDS):
                    found = await tool.trial(context, item.given)
        except TimeoutError:
            return Unfit(call, f"{call.tool} could not be tried: it took too long.", "timeout")
        except (OperationalError, InterfaceError, InternalError, FenceLost, Stopped):
            raise
        except Exception as problem:  # a tool is third-party code
            logger.exception(
                "a trial failed", extra={"run_id": session.writer.run_id, "tool": call.tool}
            )
            message = f"{call.tool} could not be tried: {type(problem).__name__}."
            return Unfit(call, message, "exception")
        if isinstance(found, ToolResult):
            return Unfit(call, str(found.content), found.code)
        return found

    async def repeat(self, item: CheckedCall) -> bool | Unfit:
        """Return whether an approved call would still do the same.

        If not, its request is superseded, and it needs a new approval.
        """
        database, writer = self._session.database, self._session.writer
        request = await database.run(_approved, writer, item.call)
        approved = request.preview if request is not None else None
        if approved is not None:
            found = await self.make(item)
            if isinstance(found, Unfit):
                return found
            if found["digest"] == approved["digest"]:
                self.approved[item.call.place] = approved
                return True
        await database.run(_supersede, writer, item.call)
        return False


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
