"""Ask people for more than a limit allows.

A run that has used up an allowance waits for it (`RunBudget.waits_for`). The request belongs to one
run: the one whose limit it is, or, for the window of a budget, the first of the family that waits.
The module `agents.features.budgets.answers` carries out decisions.
"""

from __future__ import annotations

import hashlib
from typing import Any

from agents.events.append import EventDraft, dump
from agents.features.budgets.models import BUDGET, Allowance, BudgetRequest
from agents.features.budgets.reservations import Need, Shortage, scope_word
from agents.models import ApprovalRequest, Run
from agents.providers.prices import MICRO, dollars
from agents.services.approvals.asking import requested_event
from agents.services.approvals.notices import announce_request
from agents.spec import AgentSpec
from agents.states import (
    ApprovalStatus,
    Decision,
)


def ask_for_more(
    asked_run: Run, spec: AgentSpec, shortage: Shortage, need: Need, model: str
) -> tuple[ApprovalRequest, list[EventDraft]]:
    """Return the pending request about this allowance, or a new one with its event."""
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
