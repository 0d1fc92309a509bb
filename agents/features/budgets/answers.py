"""Decisions about requests for more, and the end of requests without a decision.

A decision resumes all runs that wait for the allowance, each once, in its own transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet

from agents.features.budgets.models import BUDGET, Allowance, BudgetRequest, RunBudget
from agents.features.budgets.reservations import is_near
from agents.kernel.proposals import DecideAgain
from agents.models import ApprovalRequest, Run, RunClock
from agents.providers.prices import MICRO
from agents.services.errors import Conflict, InvalidRequest
from agents.services.runs.wake import wake_run
from agents.states import (
    APPROVAL_TRANSITIONS,
    ApprovalStatus,
    Decision,
    RunStatus,
    check_transition,
)

CODES = {"tokens": "limit_tokens", "cost": "limit_cost", "price": "limit_price"}
"""The error code of a run after a rejection, by the missing amount."""
_NAMES = {"tokens": "more_tokens", "cost": "more_cost", "price": "without_price"}
"""The field of a request's input for each missing amount."""
_AMOUNTS = ("more_tokens", "more_cost")
MOST_TOKENS = 10**15
MOST_MICROUSD = 10**15


def lock_waiters(request: ApprovalRequest) -> dict[str, Run]:
    """Lock all runs that a decision may resume, and their clocks. Return the runs by id.

    Ancestors come before descendants, by id, then the clocks in the same order.
    """
    ids = _concerned(request)
    runs = {
        run.pk: run
        for run in Run.objects.select_for_update(no_key=True)
        .filter(pk__in=ids)
        .order_by("depth", "pk")
    }
    clocks = RunClock.objects.select_for_update(no_key=True, of=("self",)).filter(run__in=runs)
    list(clocks.order_by("run__depth", "run_id").values_list("pk"))
    return runs


def _concerned(request: ApprovalRequest) -> set[str]:
    allowance_id = _allowance_of(request)
    if allowance_id is None:
        return {request.run_id}
    pending = ApprovalRequest.objects.filter(
        budget_request__allowance=allowance_id, status=ApprovalStatus.PENDING
    )
    waiting = _waiting(request).values_list("pk", flat=True)
    return {request.run_id, *waiting, *pending.values_list("run_id", flat=True)}


def _allowance_of(request: ApprovalRequest) -> int | None:
    allowances = BudgetRequest.objects.filter(request=request)
    return allowances.values_list("allowance_id", flat=True).first()


def _waiting(request: ApprovalRequest) -> QuerySet[Run]:
    return Run.objects.filter(
        budget__waits_for=_allowance_of(request),
        status=RunStatus.WAITING,
        wait_reason=BUDGET,
    )


def editable_part(request: ApprovalRequest) -> dict[str, Any]:
    """Return the part of a request's input that an `edit` may change: the amount."""
    return {name: request.input[name] for name in _AMOUNTS if name in request.input}


def amount_of(request: ApprovalRequest, arguments: dict[str, Any] | None) -> tuple[int, int]:
    """Return the tokens and the millionths of a dollar that an approval gives.

    `arguments` is the input of an `edit`, or None: the requested amount. Both are 0 for a request
    about an unknown price. Raises `InvalidRequest` unless an edit has a positive amount of the
    requested kind, and changes nothing else.
    """
    part = editable_part(request)
    if not part:
        return 0, 0
    (name,) = part
    if arguments is not None:
        others = {key: value for key, value in arguments.items() if key != name}
        if name not in arguments or not others.items() <= request.input.items():
            raise InvalidRequest(f'Expected only the additional amount: {{"{name}": …}}.')
        part = arguments
    if name == "more_cost":
        return 0, read_dollars(part[name])
    tokens = part[name]
    if type(tokens) is not int or not 0 < tokens <= MOST_TOKENS:
        raise InvalidRequest("`more_tokens` must be a positive whole number.")
    return tokens, 0


def read_dollars(text: object) -> int:
    """Return millionths of a dollar for a text such as `2.50`.

    Raises `InvalidRequest` unless it is a positive decimal number with at most six decimals.
    """
    whole, _, rest = str(text).partition(".")
    digits = rest.ljust(6, "0")
    if (
        isinstance(text, bool)
        or not whole.isascii()
        or not whole.isdecimal()
        or not (digits.isascii() and digits.isdecimal() and len(digits) == 6)
        or not 0 < (amount := int(whole) * MICRO + int(digits)) <= MOST_MICROUSD
    ):
        raise InvalidRequest("`more_cost` must be an amount of US dollars, for example 2.50.")
    return amount


def apply_answer(request: ApprovalRequest, locked: Collection[str]) -> None:
    """Carry out a decision. `locked` has the ids of the runs from `lock_waiters`.

    Raises `DecideAgain` if other runs wait by now, and `Conflict` if the limit was removed.
    """
    allowance_id = _allowance_of(request)
    allowance = None
    if allowance_id is not None:
        rows = Allowance.objects.select_for_update(no_key=True)
        allowance = rows.filter(pk=allowance_id).first()
    if allowance is None:
        raise Conflict("The budget was removed.", code="stale")
    waiting = list(_waiting(request).order_by("depth", "pk"))
    if any(run.pk not in locked for run in waiting):
        raise DecideAgain
    if request.decision == Decision.REJECT:
        _refuse(request, waiting)
    else:
        _give(request, allowance)
        for run in waiting:
            wake_run(run, "given more")


def _give(request: ApprovalRequest, allowance: Allowance) -> None:
    tokens, cost = amount_of(request, request.edited_input)
    allowance.extra_tokens += tokens
    allowance.extra_microusd += cost
    allowance.allows_unpriced = allowance.allows_unpriced or "without_price" in request.input
    # The limit has changed, so there was no warning about it.
    allowance.warned_tokens = is_near(allowance.used_tokens, allowance.token_limit)
    allowance.warned_cost = is_near(allowance.used_microusd, allowance.microusd_limit)
    allowance.save()
    others = ApprovalRequest.objects.select_for_update(no_key=True, of=("self",)).filter(
        budget_request__allowance=allowance, status=ApprovalStatus.PENDING
    )
    for other in others.order_by("pk"):
        check_transition(APPROVAL_TRANSITIONS, other.status, ApprovalStatus.SUPERSEDED)
        other.status = ApprovalStatus.SUPERSEDED
        other.save(update_fields=["status"])


def _refuse(request: ApprovalRequest, waiting: list[Run]) -> None:
    """End the waiting runs in the family of the request's run when they are driven next."""
    displayed = request.input
    kind = next(kind for kind, name in _NAMES.items() if name in displayed)
    reason = f" Reason: {request.reason}" if request.reason.strip() else ""
    message = f"{request.prompt} A person did not increase the budget.{reason}"
    family = request.run.thread.root_id or request.run.thread_id
    own = [run for run in waiting if family in (run.thread_id, run.thread.root_id)]
    for run_id in sorted({request.run_id, *(run.pk for run in own)}):
        # The run that has the request may never have been limited itself.
        RunBudget.objects.update_or_create(
            run_id=run_id, defaults={"refusal_code": CODES[kind], "refusal": message}
        )
    for run in own:
        wake_run(run, "given no more")


def stop_waiting(run: Run) -> None:
    """Withdraw the request of a locked run, unless another run of its family waits for it."""
    rows = RunBudget.objects.filter(run=run)
    allowance_id = rows.values_list("waits_for", flat=True).first()
    family = run.thread.root_id or run.thread_id
    others = Run.objects.filter(
        Q(thread=family) | Q(thread__root=family),
        budget__waits_for=allowance_id,
        status=RunStatus.WAITING,
        wait_reason=BUDGET,
    ).exclude(pk=run.pk)
    if allowance_id is None or others.exists():
        return
    ApprovalRequest.objects.filter(
        Q(run__thread=family) | Q(run__thread__root=family),
        budget_request__allowance=allowance_id,
        status=ApprovalStatus.PENDING,
    ).update(status=ApprovalStatus.CANCELLED)
