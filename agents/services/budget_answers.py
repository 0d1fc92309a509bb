"""What people's answers to a request for more do, and how such a request ends without one.

An answer wakes all that wait for the allowance, each once, in the transaction that records it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet

from agents.kernel.row_hooks import RowHooks
from agents.models import MICRO, Allowance, ApprovalRequest, Run, RunClock
from agents.models.database_clock import DatabaseNow
from agents.services.errors import InvalidRequest
from agents.services.reservations import is_near, release
from agents.services.wake import lock_run, wake_run
from agents.states import (
    APPROVAL_TRANSITIONS,
    ApprovalStatus,
    Decision,
    RunStatus,
    WaitReason,
    check_transition,
)

CODES = {"tokens": "limit_tokens", "cost": "limit_cost", "price": "limit_price"}
"""How a run ends that is given no more, by what is missing."""
_NAMES = {"tokens": "more_tokens", "cost": "more_cost", "price": "without_price"}
"""What in a request's input tells what is missing."""
_AMOUNTS = ("more_tokens", "more_cost")
MOST_TOKENS = 10**15
MOST_MICROUSD = 10**15


class WaitersChanged(Exception):
    """Another run has come to wait since the rows were locked: lock again, with that one."""


def lock_waiters(request: ApprovalRequest) -> dict[str, Run]:
    """Lock all runs that an answer may concern, and their clocks; the runs by id.

    Ancestors before descendants, by id, as everywhere; then the clocks in the same order.
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
    pending = ApprovalRequest.objects.filter(
        allowance=request.allowance_id, status=ApprovalStatus.PENDING
    )
    waiting = _waiting(request).values_list("pk", flat=True)
    return {request.run_id, *waiting, *pending.values_list("run_id", flat=True)}


def _waiting(request: ApprovalRequest) -> QuerySet[Run]:
    return Run.objects.filter(
        clock__waits_for=request.allowance_id,
        status=RunStatus.WAITING,
        wait_reason=WaitReason.BUDGET,
    )


def editable_part(request: ApprovalRequest) -> dict[str, Any]:
    """What of a request's input an `edit` may change: how much more there is to be."""
    return {name: request.input[name] for name in _AMOUNTS if name in request.input}


def amount_of(request: ApprovalRequest, arguments: dict[str, Any] | None) -> tuple[int, int]:
    """(tokens, millionths of a dollar) that an approval gives. `arguments`: of an `edit`.

    Raises `InvalidRequest` for an edit that is no positive amount of what is asked for, or that
    changes anything else.
    """
    part = editable_part(request)
    if not part:
        return 0, 0
    (name,) = part
    if arguments is not None:
        others = {key: value for key, value in arguments.items() if key != name}
        if name not in arguments or not others.items() <= request.input.items():
            raise InvalidRequest(f'Say how much more, and nothing else: {{"{name}": …}}.')
        part = arguments
    if name == "more_cost":
        return 0, read_dollars(part[name])
    tokens = part[name]
    if type(tokens) is not int or not 0 < tokens <= MOST_TOKENS:
        raise InvalidRequest("`more_tokens` must be a positive whole number.")
    return tokens, 0


def read_dollars(text: object) -> int:
    """Millionths of a dollar of an amount as `2.50`. Raises `InvalidRequest`."""
    whole, _, rest = str(text).partition(".")
    digits = rest.ljust(6, "0")
    if (
        isinstance(text, bool)
        or not whole.isascii()
        or not whole.isdecimal()
        or not (digits.isascii() and digits.isdecimal() and len(digits) == 6)
        or not 0 < (amount := int(whole) * MICRO + int(digits)) <= MOST_MICROUSD
    ):
        raise InvalidRequest("`more_cost` must be an amount of US dollars, as 2.50.")
    return amount


def apply_answer(request: ApprovalRequest, locked: Collection[str]) -> None:
    """Carry out a decision that was just recorded. `locked`: what `lock_waiters` has locked.

    Raises `WaitersChanged` when that is not all that wait now.
    """
    assert request.allowance_id is not None
    allowance = Allowance.objects.select_for_update(no_key=True).get(pk=request.allowance_id)
    waiting = list(_waiting(request).order_by("depth", "pk"))
    if any(run.pk not in locked for run in waiting):
        raise WaitersChanged
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
    # The limit is another one now, of which nobody was warned.
    allowance.warned_tokens = is_near(allowance.used_tokens, allowance.token_limit)
    allowance.warned_cost = is_near(allowance.used_microusd, allowance.microusd_limit)
    allowance.save()
    others = ApprovalRequest.objects.select_for_update(no_key=True).filter(
        allowance=allowance, status=ApprovalStatus.PENDING
    )
    for other in others.order_by("pk"):
        check_transition(APPROVAL_TRANSITIONS, other.status, ApprovalStatus.SUPERSEDED)
        other.status = ApprovalStatus.SUPERSEDED
        other.save(update_fields=["status"])


def _refuse(request: ApprovalRequest, waiting: list[Run]) -> None:
    """Whoever waits in the family of the request's run ends when it is driven next."""
    displayed = request.input
    kind = next(kind for kind, name in _NAMES.items() if name in displayed)
    reason = f" Reason: {request.reason}" if request.reason.strip() else ""
    message = f"{request.prompt} A person gave no more.{reason}"
    family = request.run.thread.root_id or request.run.thread_id
    own = [run for run in waiting if family in (run.thread_id, run.thread.root_id)]
    RunClock.objects.filter(run__in=[request.run_id, *(run.pk for run in own)]).update(
        refusal_code=CODES[kind], refusal=message
    )
    for run in own:
        wake_run(run, "given no more")


def stop_waiting(run: Run) -> None:
    """Take back what was asked for a locked run, if no other of its family waits for the same."""
    allowance_id = RunClock.objects.values_list("waits_for", flat=True).get(run=run)
    family = run.thread.root_id or run.thread_id
    others = Run.objects.filter(
        Q(thread=family) | Q(thread__root=family),
        clock__waits_for=allowance_id,
        status=RunStatus.WAITING,
        wait_reason=WaitReason.BUDGET,
    ).exclude(pk=run.pk)
    if allowance_id is None or others.exists():
        return
    ApprovalRequest.objects.filter(
        Q(run__thread=family) | Q(run__thread__root=family),
        allowance=allowance_id,
        status=ApprovalStatus.PENDING,
    ).update(status=ApprovalStatus.CANCELLED)


def wake_for_window() -> bool:
    """Let one run go on that waits for a window of a budget which is over. False: there is none.

    Any process may do it, at any time, in a transaction of its own.
    """
    due = Run.objects.filter(
        wake_at__lte=DatabaseNow(), status=RunStatus.WAITING, wait_reason=WaitReason.BUDGET
    )
    run_id = due.order_by("wake_at").values_list("pk", flat=True).first()
    if run_id is None:
        return False
    run = lock_run(run_id)
    if due.filter(pk=run_id).exists():  # else somebody else was first
        stop_waiting(run)
        wake_run(run, "a new window has begun")
    return True


class BudgetRows(RowHooks):
    """Runs that end or lose their driver hold nothing back, and ask for nothing more."""

    order = 100
    waits_for = WaitReason.BUDGET

    def released(self, run_id: str, clock: RunClock) -> None:
        if clock.reserved_from:  # for a call that was not finished
            release(run_id)

    def stop_waiting(self, run: Run) -> None:
        stop_waiting(run)
