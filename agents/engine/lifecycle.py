"""Telling the operator's hooks what a run does. They change nothing of it, and cannot end it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError

from agents.engine.database import Database
from agents.engine.journal import write_events
from agents.engine.watching import tell_spans
from agents.events.catalogue.guardrails import HookFailed
from agents.guards.lifecycle_hooks import HookContext
from agents.guards.registry import hook_calls
from agents.guards.runner import HOOKS
from agents.guards.usable import HookCall, joined
from agents.models import Run
from agents.services.run_ends import forget_ended_run, somebody_wants_ends, take_ended_run
from agents.services.run_toolkits import toolkit_of
from agents.states import RunStatus

if TYPE_CHECKING:
    from agents.engine.session import Session

logger = logging.getLogger(__name__)


async def tell(session: Session, point: str, *arguments: Any) -> None:
    """Call what is registered at `point`, one after the other.

    What is raised is logged and shown as an event.
    """
    assert session.hooks is not None
    if point not in session.hooks:
        return
    turn = session.turn + point.endswith("_model_call")  # which is the next one
    context = hook_context(session.run, session.spec.slug, turn)
    for call in session.hooks[point]:
        problem = await _called(call, point, context, arguments)
        if problem:
            failure = HookFailed(hook=call[0], point=point, message=problem)
            await session.database.share(write_events, session.writer, [failure])


class EndTeller:
    """Tells hooks of runs that have ended, whoever ended them; one look at a time per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Tell what is due, in the background."""
        if somebody_wants_ends() and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._tell_all())

    async def finish(self) -> None:
        """Tell all that is due now: a process of one command ends right after its run."""
        if self._task is not None:
            await self._task
        self.look()
        if self._task is not None:
            await self._task

    async def _tell_all(self) -> None:
        try:
            while (found := await self._database.run(take_ended_run)) is not None:
                row, run = found
                await tell_spans(self._database, run)
                await _tell_of_end(run)
                await self._database.run(forget_ended_run, row)
        except DatabaseError as error:
            # The row is still there, and due again by itself.
            logger.warning("telling hooks of ended runs failed: %s", error)


async def _tell_of_end(run: Run) -> None:
    """Its log is closed: what a hook raises is in the worker's log only."""
    context = hook_context(run, run.spec["slug"], run.clock.turn)
    toolkit = toolkit_of(run, run.spec.get("toolkit", ""))
    hooks = joined(hook_calls(), toolkit.hooks if toolkit is not None else None)
    for call in (hooks or {}).get("run_ended", ()):
        if call[0].endswith(".onError") and run.status != RunStatus.FAILED:
            continue
        arguments = (run.status, run.error_code, run.error_message)
        await _called(call, "run_ended", context, arguments)


def hook_context(run: Run, slug: str, turn: int) -> HookContext:
    return HookContext(run.pk, run.thread_id, run.owner_id, slug, turn)


async def _called(
    call: HookCall, point: str, context: HookContext, arguments: tuple[Any, ...]
) -> str:
    """Empty, or what went wrong in a few words; the text of an exception stays in the log."""
    name, function, seconds = call
    try:
        await HOOKS.call(function, context, *arguments, seconds=seconds)
    except TimeoutError:
        problem = f"took longer than {seconds:g} s"
    except Exception as error:  # a hook is somebody else's code
        problem = f"raised {type(error).__name__}"
        logger.warning("a hook failed", exc_info=error, extra={"run_id": context.run_id})
    else:
        return ""
    logger.warning("hook %s %s at %s", name, problem, point, extra={"run_id": context.run_id})
    return problem
