"""In whose name a call is made."""

from __future__ import annotations

from agents.custom.context import ToolContext
from agents.middleware.base import ToolContext as EngineContext
from agents.models import Run


class AccountOff(Exception):
    """The person in whose name the run works has been switched off meanwhile."""


async def context_of(engine: EngineContext) -> ToolContext:
    """Raises `AccountOff`: what a person may not do any more, no agent does in their name."""
    run = await engine.in_database(_run, engine.run_id)
    if not run.owner.is_active:
        raise AccountOff
    return ToolContext(
        user=run.owner,
        run_id=engine.run_id,
        thread_id=engine.thread_id,
        session_id=run.thread.key,
        agent=engine.spec.slug,
        call_id=engine.call_id,
        progress=engine.progress,
    )


def _run(run_id: str) -> Run:
    return Run.objects.select_related("owner", "thread").get(pk=run_id)
