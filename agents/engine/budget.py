"""What a driver does so that no allowance is exceeded: reserve before each call, settle after it.

A run that nothing limits does none of this, and its turns cost no statement more.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

from agents.engine.errors import Stopped, StopReason
from agents.engine.journal import check_fence
from agents.engine.journal_rows import Writer
from agents.engine.session import Prompt, Session
from agents.events.append import append_events
from agents.kernel.middleware import Leave
from agents.kernel.park import End, Locked, Park, Suspend
from agents.models import Allowance, Run, RunClock
from agents.providers.base import Usage
from agents.providers.prices import worst_cost_microusd
from agents.services.budget_requests import ask_for_more
from agents.services.budget_scope import Scope, allowances_of, open_budget, scope_of, window_end
from agents.services.reservations import (
    Need,
    NoRoom,
    Reserved,
    release,
    reserve,
    settle,
    shortage_among,
)
from agents.spec import AgentSpec
from agents.states import WaitReason

FIRST_PAUSE, MAX_PAUSE = 0.05, 0.5
"""Seconds between two looks whether calls under way have left something."""
UNSEEN_TOKENS = 1_000
"""What a server may add to a prompt by itself, for tools above all."""


def need_of(session: Session) -> Need:
    """The worst that the next call may use; what a cache may save is never assumed.

    A token is at least one byte. What the server has counted already counts as it did.
    """
    conversation, last = session.conversation, session.last_prompt
    size = conversation.size
    tokens = size + UNSEEN_TOKENS
    if last is not None and last.conversation is conversation and last.tokens <= last.size:
        tokens = last.tokens + size - last.size
    output = session.spec.max_output_tokens
    cost: int | None = 0
    if not session.provider.is_scripted:
        cost = worst_cost_microusd(session.spec.model, tokens, output)
    return Need(tokens + output, cost)


async def reserve_call(session: Session) -> None:
    """Reserve for the next model call, unless that is done. Raises `Stopped`, and `Leave` to park.

    While calls under way might use up what is left it waits for them.
    """
    is_reserved = session.reserved is not None and session.reserved_for is session.conversation
    if session.budget is None or is_reserved:
        return
    pause = FIRST_PAUSE
    while True:
        need = need_of(session)
        session.prompt_size = session.conversation.size
        try:
            session.reserved = await session.database.run(
                _reserve, session.writer, session.budget, need, session.reserved
            )
        except NoRoom as refusal:
            if refusal.is_used_up:
                raise Leave(wait_for_budget(session.budget, session.spec, need)) from None
        else:
            session.reserved_for = session.conversation
            return
        if session.handle.draining:
            raise Stopped(StopReason.DRAIN)
        with session.handle.interruptible():
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311
        pause = min(pause * 2, MAX_PAUSE)


def _reserve(writer: Writer, scope: Scope, need: Need, left: Reserved | None) -> Reserved:
    check_fence(writer)
    if left is not None:  # of a call that failed
        release(writer.run_id)
    return reserve(writer.run_id, allowances_of(scope), need)


class BudgetAppeared(Exception):
    """A budget was made while the run went on; nothing was written. See `notice_budget`."""


def settle_call(session: Session, usage: Usage, microusd: int | None, *, budgeted: bool) -> None:
    """Count the reply that was just written, in the same transaction, and warn.

    `budgeted` is what `write_reply` returned. Raises `BudgetAppeared`.
    """
    scope = session.budget
    if scope is None:
        if budgeted:
            raise BudgetAppeared
        return
    reserved = session.reserved
    # Of a call that was made before there was a budget: in those that there are now.
    ids = () if reserved else [allowance.pk for allowance in allowances_of(scope)]
    drafts = settle(session.writer.run_id, reserved, ids, usage.total, microusd or 0)
    append_events(session.writer.run_id, drafts)


def note_settled(session: Session, usage: Usage) -> None:
    """Nothing is reserved any more; what the prompt came to helps to tell the next need."""
    if session.budget is not None:
        told = usage.input + usage.cache_read + usage.cache_write
        session.last_prompt = Prompt(session.conversation, session.prompt_size, told)
        session.reserved = None


async def notice_budget(session: Session) -> None:
    """Let the calls of the run count in a budget that was made while it went on."""
    session.budget = await session.database.run(_notice, session.run, session.spec)


def _notice(run: Run, spec: AgentSpec) -> Scope:
    # A budget that is gone again by now leaves a scope in which nothing counts.
    return open_budget(run, spec) or scope_of(run)


def wait_for_budget(scope: Scope, spec: AgentSpec, need: Need) -> Park:
    """Ask for more where an allowance is used up, and wait for it."""
    return Park(WaitReason.BUDGET, partial(_ask_for_more, scope, spec, need), locks=scope.run_ids)


def _ask_for_more(
    scope: Scope, spec: AgentSpec, need: Need, locked: Locked
) -> Suspend | End | None:
    run, clock = locked.run, locked.clock
    if clock.refusal:
        return End(clock.refusal_code, clock.refusal)
    ids = [allowance.pk for allowance in allowances_of(scope)]
    rows = Allowance.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("id")
    shortage = shortage_among(rows, need)
    if shortage is None:
        return None
    allowance = shortage.allowance
    asked = locked.runs[allowance.run_id or scope.run_ids[0]]
    asked_spec = spec if asked.pk == run.pk else AgentSpec.model_validate(asked.spec)
    request, drafts = ask_for_more(asked, asked_spec, shortage, need, spec.model)
    append_events(asked.pk, drafts)
    RunClock.objects.filter(run=run).update(waits_for=allowance)
    data: dict[str, Any] = {"approval_ids": [request.pk]}
    if asked.pk != run.pk:
        data["asked_in"] = asked.pk
    until = None
    if allowance.budget is not None:
        until = window_end(allowance.budget.period, scope.time_zone).timestamp()
    return Suspend(data, wake_at=until)
