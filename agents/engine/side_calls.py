"""Model calls that are not turns of the run, for example for summaries.

Each is added to the totals of the run immediately.
"""

from __future__ import annotations

from django.db.models import F

from agents.engine.calls.outcomes import commit_with
from agents.engine.session import Session
from agents.engine.storage.journal import check_fence
from agents.events.append import EventDraft, dump
from agents.events.event import Piece
from agents.kernel.middleware import ModelRequest
from agents.models import RunClock
from agents.providers.base import PromptHead, Reply, Usage
from agents.providers.prices import cost_microusd


class Unwatched:
    """The stream of a model call whose text no client sees. It discards everything."""

    def add(self, kind: type[Piece], part: str, text: str) -> None:
        """See `Watched.add`."""

    def put(self, draft: EventDraft) -> None:
        """See `Watched.put`."""

    def drop_parts(self) -> None:
        """See `Watched.drop_parts`."""


async def ask_aside(session: Session, head: PromptHead, text: str) -> Reply:
    """See `RunContext.ask_aside`."""
    conversation = session.provider.conversation(head)
    conversation.append("user", dump([{"type": "text", "text": text}]))
    request = ModelRequest(
        purpose="side",
        turn=session.turn + 1,
        model=head.model,
        max_output=head.max_tokens,
        provider=session.provider,
        conversation=conversation,
        stream=Unwatched(),
    )
    with session.handle.interruptible():
        reply = await session.call_model(request)
    await count_side_call(session, request, reply.usage)
    return reply


async def count_side_call(session: Session, request: ModelRequest, usage: Usage) -> None:
    """Add the usage of a call to the run's totals, and commit `request.commits` with it.

    Raises `FenceLost`.
    """
    scripted = session.provider.is_scripted
    cost = 0 if scripted else cost_microusd(session.spec.model, usage)

    def write() -> None:
        check_fence(session.writer)
        clock = RunClock.objects.filter(run_id=session.writer.run_id)
        clock.update(
            input_tokens=F("input_tokens") + usage.input,
            output_tokens=F("output_tokens") + usage.output,
            cache_read_tokens=F("cache_read_tokens") + usage.cache_read,
            cache_write_tokens=F("cache_write_tokens") + usage.cache_write,
            cost_microusd=F("cost_microusd") + (cost or 0),
        )
        if cost is None:
            clock.update(cost_known=False)
        request.noticed = clock.values_list("noticed", flat=True).get()
        for commit in request.commits:
            commit.write()

    await commit_with(session.database, write, request.commits, alone=True)
    session.tokens += usage.total
    session.cost_microusd += cost or 0
