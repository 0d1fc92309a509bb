"""Model calls whose replies are not turns of the run, for example summaries.

Each counts in the totals and budgets of the run as soon as it is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import F

from agents.engine.budget import BudgetAppeared, notice_budget, settle_call
from agents.engine.journal import check_fence
from agents.engine.outcomes import committed
from agents.engine.session import Session
from agents.events.append import EventDraft, dump
from agents.events.event import Piece
from agents.kernel.middleware import Commit, ModelRequest
from agents.models import RunClock
from agents.providers.base import PromptHead, ProviderError, Reply, Usage
from agents.providers.prices import cost_microusd, worst_cost_microusd
from agents.services.budget_scope import allowances_of
from agents.services.reservations import Need, NoRoom, release, reserve

UNSEEN_TOKENS = 1_000
"""Tokens that a server may add to a prompt."""


class Unwatched:
    """Takes the place of a run's stream: nobody watches the call."""

    def add(self, kind: type[Piece], part: str, text: str) -> None:
        """See `Watched.add`."""

    def put(self, draft: EventDraft) -> None:
        """See `Watched.put`."""

    def drop_parts(self) -> None:
        """See `Watched.drop_parts`."""


async def ask_aside(session: Session, head: PromptHead, text: str) -> Reply:
    """See `RunContext.ask_aside`. Raises `ProviderError` (no_budget) if no budget has room."""
    conversation = session.provider.conversation(head)
    content = dump([{"type": "text", "text": text}])
    conversation.append("user", content)
    size = len(content.encode()) + len(head.system.encode()) + UNSEEN_TOKENS
    if not await reserve_side_call(session, size, head.max_tokens):
        raise ProviderError("no budget has room for the call", code="no_budget")
    request = ModelRequest(
        purpose="side",
        turn=session.turn + 1,
        model=head.model,
        provider=session.provider,
        conversation=conversation,
        stream=Unwatched(),
    )
    with session.handle.interruptible():
        reply = await session.call_model(request)
    await count_side_call(session, reply.usage, request.commits)
    return reply


async def reserve_side_call(session: Session, tokens: int, output: int) -> bool:
    """Reserve for a call with a prompt of so many tokens. False: no budget admits it now."""
    if session.budget is None:
        return True
    cost: int | None = 0
    if not session.provider.is_scripted:
        cost = worst_cost_microusd(session.spec.model, tokens, output)
    try:
        await session.database.run(_reserve, session, Need(tokens + output, cost))
    except NoRoom:
        return False
    return True


def _reserve(session: Session, need: Need) -> None:
    assert session.budget is not None
    check_fence(session.writer)
    if session.reserved is not None:  # of a call that failed
        release(session.writer.run_id)
    session.reserved = reserve(session.writer.run_id, allowances_of(session.budget), need)
    session.reserved_for = None


async def count_side_call(session: Session, usage: Usage, commits: Sequence[Commit] = ()) -> None:
    """Add what a call used to the run's totals and to its budgets. Raises `FenceLost`."""
    scripted = session.provider.is_scripted
    cost = 0 if scripted else cost_microusd(session.spec.model, usage)
    try:
        await session.database.run(_count, session, usage, cost, commits)
    except BudgetAppeared:
        await notice_budget(session)
        await session.database.run(_count, session, usage, cost, commits)
    committed(commits)
    session.reserved = None
    session.tokens += usage.total
    session.cost_microusd += cost or 0


def _count(session: Session, usage: Usage, cost: int | None, commits: Sequence[Commit]) -> None:
    check_fence(session.writer)
    clock = RunClock.objects.filter(run_id=session.writer.run_id)
    clock.update(
        input_tokens=F("input_tokens") + usage.input,
        output_tokens=F("output_tokens") + usage.output,
        cache_read_tokens=F("cache_read_tokens") + usage.cache_read,
        cache_write_tokens=F("cache_write_tokens") + usage.cache_write,
        cost_microusd=F("cost_microusd") + (cost or 0),
        reserved_tokens=0,
        reserved_microusd=0,
        reserved_from="",
    )
    if cost is None:
        clock.update(cost_known=False)
    budgeted = clock.values_list("budgeted", flat=True).get()
    settle_call(session, usage, cost, budgeted=budgeted)
    for commit in commits:
        commit.write()
