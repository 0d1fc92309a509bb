"""Reserve the maximum use of a model call before it is made, and settle it with the reply.

Runs without limits skip all of this, and their turns have no additional statements.

A run that has used up an allowance waits for it (`RunBudget.waits_for`). The request belongs to one
run: the one whose limit it is, or, for the window of a budget, the first of the family that waits.
The module `agents.features.budgets.answers` carries out decisions.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents.events.append import EventDraft, append_events, dump
from agents.features.budgets.models import BUDGET, Allowance, BudgetRequest, RunBudget
from agents.features.budgets.reservations import (
    Need,
    NoRoom,
    Reserved,
    Shortage,
    release,
    reserve,
    scope_word,
    settle,
    shortage_among,
)
from agents.features.budgets.scope import Scope, allowances_of, open_budget, scope_of, window_end
from agents.kernel.lease import Writer, held_clock
from agents.kernel.middleware import (
    CommitAgain,
    LoadContext,
    ModelHandler,
    ModelRequest,
    RunContext,
)
from agents.kernel.park import End, Locked, Park, Suspend
from agents.middleware.base import Middleware
from agents.models import ApprovalRequest, Run
from agents.providers.base import Conversation, ProviderError, Reply, Usage
from agents.providers.prices import MICRO, cost_microusd, dollars, worst_cost_microusd
from agents.services.approvals.asking import requested_event
from agents.services.approvals.notices import announce_request
from agents.spec import AgentSpec
from agents.states import (
    ApprovalStatus,
    Decision,
)

FIRST_PAUSE, MAX_PAUSE = 0.05, 0.5
"""Seconds between two attempts to reserve while calls in progress may use up the rest."""
UNSEEN_TOKENS = 1_000
"""Tokens that a server may add to a prompt, for example for tools."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The length of a prompt of one conversation: in bytes, and in the server's tokens."""

    conversation: Conversation
    size: int
    tokens: int


@dataclass(slots=True)
class RunLimits:
    """The limits of one run during one claim."""

    scope: Scope | None = None
    """The allowances of its calls. None: no limits."""
    reserved: Reserved | None = None
    """The reservation of the call in progress, or of a failed one."""
    last: Prompt | None = None
    """The last prompt that the server has counted."""


class Budgets(Middleware):
    """Makes sure that each limit is exceeded by one call at most."""

    name = "budgets"

    def load(self, context: LoadContext) -> RunLimits | End:
        row = RunBudget.objects.filter(run=context.row).first()
        if row is not None and row.refusal:
            return End(row.refusal_code, row.refusal)
        return RunLimits(open_budget(context.row, context.spec))

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        limits = run.state(RunLimits)
        size = 0
        if limits.scope is not None:
            size = request.conversation.size
            await _reserve_call(run, limits, request)
        held = limits.reserved
        reply = await handler(request)
        request.on_commit(
            partial(_settle_call, run, limits, request, held, reply.usage),
            alone=limits.scope is not None,
            then=partial(_settled, limits, request, size, reply.usage),
        )
        return reply


def need_of(limits: RunLimits, request: ModelRequest) -> Need:
    """Return the most that a call can use, without savings by a cache.

    A token is at least one byte. For the part that the server has already counted, its count is
    used.
    """
    conversation, last = request.conversation, limits.last
    size = conversation.size
    tokens = size + UNSEEN_TOKENS
    if last is not None and last.conversation is conversation and last.tokens <= last.size:
        tokens = last.tokens + size - last.size
    cost: int | None = 0
    if not request.provider.is_scripted:
        cost = worst_cost_microusd(request.model, tokens, request.max_output)
    return Need(tokens + request.max_output, cost)


async def _reserve_call(run: RunContext, limits: RunLimits, request: ModelRequest) -> None:
    """Reserve for a call, or leave the run to wait for more.

    Waits while calls in progress may use up the rest. A side call does not wait.
    """
    assert limits.scope is not None
    pause = FIRST_PAUSE
    while True:
        need = need_of(limits, request)
        try:
            limits.reserved = await run.in_database(
                reserve_for, run.writer, limits.scope, need, limits.reserved
            )
        except NoRoom as refusal:
            if request.purpose == "side":
                raise ProviderError("no budget has room for this", code="no_budget") from None
            if refusal.is_used_up:
                run.leave(wait_for_budget(limits.scope, run.spec, need))
        else:
            return
        await run.pause(pause * (0.5 + random.random()))  # noqa: S311
        pause = min(pause * 2, MAX_PAUSE)


def reserve_for(writer: Writer, scope: Scope, need: Need, left: Reserved | None) -> Reserved:
    """Reserve `need` in all allowances of a run. Raises `NoRoom`.

    `left` is the reservation of a failed call, which is released first. Locks the run's clock.
    """
    held_clock(writer)
    if left is not None:
        release(writer.run_id)
    return reserve(writer.run_id, allowances_of(scope), need)


def _settle_call(
    run: RunContext,
    limits: RunLimits,
    request: ModelRequest,
    held: Reserved | None,
    usage: Usage,
) -> None:
    """Count a reply in the transaction that stores it, and warn."""
    run_id, scope = run.writer.run_id, limits.scope
    if scope is None:
        if request.noticed:
            raise CommitAgain(partial(_read_again, run, limits))
        return
    cost: int | None = 0
    if not request.provider.is_scripted:
        cost = cost_microusd(request.model, usage)
    # A later call has already released the reservation of an earlier one.
    reserved = held if held is limits.reserved else None
    # A call from before the budget: it counts in the present budgets.
    ids = () if reserved else [allowance.pk for allowance in allowances_of(scope)]
    append_events(run_id, settle(run_id, reserved, ids, usage.total, cost or 0))


def _settled(limits: RunLimits, request: ModelRequest, size: int, usage: Usage) -> None:
    """Store the server's count for the next need."""
    if limits.scope is None:
        return
    limits.reserved = None
    if request.purpose == "step":
        tokens = usage.input + usage.cache_read + usage.cache_write
        limits.last = Prompt(request.conversation, size, tokens)


async def _read_again(run: RunContext, limits: RunLimits) -> None:
    """Let the calls of a run count in a budget that was created since its claim."""
    limits.scope = await run.in_database(_scope_now, run.writer, run.row, run.spec)


def _scope_now(writer: Writer, run: Run, spec: AgentSpec) -> Scope:
    held_clock(writer)
    # If the budget was deleted in between, calls in the scope do not count.
    return open_budget(run, spec) or scope_of(run)


def wait_for_budget(scope: Scope, spec: AgentSpec, need: Need) -> Park:
    """Return a park with a request for more of the used-up amount.

    `need` is the worst case of the call that has no room.
    """
    return Park(BUDGET, partial(_ask_for_more, scope, spec, need), locks=scope.run_ids)


def _ask_for_more(
    scope: Scope, spec: AgentSpec, need: Need, locked: Locked
) -> Suspend | End | None:
    run = locked.run
    row = RunBudget.objects.filter(run=run).first()
    if row is not None and row.refusal:
        return End(row.refusal_code, row.refusal)
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
    RunBudget.objects.update_or_create(run=run, defaults={"waits_for": allowance})
    data: dict[str, Any] = {"approval_ids": [request.pk]}
    if asked.pk != run.pk:
        data["asked_in"] = asked.pk
    until = None
    if allowance.budget is not None:
        until = window_end(allowance.budget.period, scope.time_zone).timestamp()
    return Suspend(data, wake_at=until)


MIDDLEWARE = [Budgets()]


def ask_for_more(
    asked_run: Run, spec: AgentSpec, shortage: Shortage, need: Need, model: str
) -> tuple[ApprovalRequest, list[EventDraft]]:
    """Return the pending request about the allowance of `shortage`, or a new one with its event.

    `asked_run` is the run that has the request, and `spec` is its agent. `need` is the worst case
    of the call that has no room, and `model` its model.
    """
    allowance = shortage.allowance
    there = ApprovalRequest.objects.filter(
        run=asked_run, budget_request__allowance=allowance, status=ApprovalStatus.PENDING
    ).first()
    if there is not None:
        return there, []
    displayed = _shown(shortage, need, model)
    is_own = allowance.run_id is not None
    needed = spec.approvals_needed if is_own else 1
    decisions = [Decision.APPROVE, Decision.EDIT, Decision.REJECT]
    if shortage.kind == "price" or needed > 1:
        decisions.remove(Decision.EDIT)
    request = ApprovalRequest.objects.create(
        run=asked_run,
        kind=BUDGET,
        tool=BUDGET,
        input=displayed,
        prompt=prompt_of(shortage, model),
        digest=hashlib.sha256(dump([BUDGET, allowance.pk, displayed]).encode()).hexdigest(),
        allowed_decisions=[str(decision) for decision in decisions],
        approvals_needed=needed,
        self_approval=spec.self_approval if is_own else True,
    )
    BudgetRequest.objects.create(request=request, allowance=allowance)
    announce_request(request)
    return request, [requested_event(request)]


def prompt_of(shortage: Shortage, model: str = "") -> str:
    """Say in a sentence which limit is used up."""
    allowance = shortage.allowance
    whose = _whose(allowance)
    tokens, cost = allowance.token_limit, allowance.microusd_limit
    if shortage.kind == "tokens":
        return f"{whose} used {allowance.used_tokens:,} tokens and may use {tokens:,}."
    assert cost is not None
    if shortage.kind == "cost":
        return f"{whose} cost ${dollars(allowance.used_microusd)} and may cost ${dollars(cost)}."
    return (
        f"{whose} may cost ${dollars(cost)}, and that cannot be checked: the price of the model "
        f"{model} is not known."
    )


def _whose(allowance: Allowance) -> str:
    if allowance.budget is None:
        return "The run"
    return f"All runs of {allowance.budget.of} in {allowance.window}"


def _shown(shortage: Shortage, need: Need, model: str) -> dict[str, Any]:
    """Return the input of a request: the use, the limit, and the amount of an approval."""
    allowance = shortage.allowance
    displayed: dict[str, Any] = {"limit_of": scope_word(allowance)}
    if allowance.budget is not None:
        displayed |= {"window": allowance.window, "budget": str(allowance.budget)}
    if shortage.kind == "tokens":
        limit = allowance.token_limit or 0
        more = _more(allowance.max_tokens or need.tokens, allowance.used_tokens - limit)
        return {**displayed, "used_tokens": allowance.used_tokens, "limit_tokens": limit,
                "more_tokens": more}  # fmt: skip
    cost = allowance.microusd_limit or 0
    displayed |= {"used_cost": dollars(allowance.used_microusd), "limit_cost": dollars(cost)}
    if shortage.kind == "price":
        return {**displayed, "model": model, "without_price": True}
    base = allowance.max_microusd or need.microusd or MICRO
    return {**displayed, "more_cost": dollars(_more(base, allowance.used_microusd - cost))}


def _more(base: int, over: int) -> int:
    """Return `base` as often as needed, so that something is left."""
    return base * (over // base + 1)
