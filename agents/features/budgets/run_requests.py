"""Requests for more than a limit allows, for all doors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.features.budgets.answers import amount_of, apply_answer, editable_part, lock_waiters
from agents.features.budgets.models import BUDGET
from agents.features.budgets.queries import may_change_budgets
from agents.kernel.proposals import RunRequestKind
from agents.models import ApprovalRequest, Run
from agents.review import Review
from agents.review.call import fields_section
from agents.review.parts import Note, one_line
from agents.services.errors import NotAllowed


class BudgetRequestKind(RunRequestKind):
    """Requests for more tokens, a higher cost, or calls with an unknown price."""

    name = BUDGET
    label = _("budget")
    relations = ("budget_request__allowance",)
    headline = _("Asks for a larger budget")
    how_to_resume = (
        "it waits for a budget: GET /api/v1/approvals?status=pending&run={run} shows the request, "
        "and it continues when it is granted"
    )
    why_waiting = "its budget is used up, and a person must decide how it continues"
    text_label = _("How much more, as JSON")
    save_label = _("Give this much")
    question = "Give more"

    def may_decide(self, user: Any, request: ApprovalRequest | None = None) -> bool:
        is_concerned = request is None or is_of_window(request)
        return is_concerned and may_change_budgets(user)

    def seen_by(self, user: AbstractBaseUser) -> Q:
        if may_change_budgets(user):
            return Q(budget_request__allowance__budget__isnull=False)
        return Q(pk__in=())

    def check_right(self, request: ApprovalRequest, by: AbstractBaseUser) -> None:
        if is_of_window(request) and not may_change_budgets(by):
            raise NotAllowed(
                "Only users with the permission to change budgets can raise this budget, because "
                "it is not the run's own."
            )

    def lock(self, request: ApprovalRequest) -> dict[str, Run]:
        return lock_waiters(request)

    def editable(self, request: ApprovalRequest) -> dict[str, Any]:
        return editable_part(request)

    def check_edit(self, request: ApprovalRequest, arguments: Any) -> None:
        amount_of(request, arguments)

    def carry_out(self, request: ApprovalRequest, locked: Mapping[str, Run]) -> None:
        apply_answer(request, locked)

    def review(self, request: ApprovalRequest) -> Review:
        return review_of(request.input)


def is_of_window(request: ApprovalRequest) -> bool:
    """Return whether the request is about a budget's window, and not a run's own limit."""
    more = getattr(request, "budget_request", None)
    return more is not None and more.allowance is not None and more.allowance.budget_id is not None


def review_of(asked: Mapping[str, Any]) -> Review:
    """Return a request for more in words. `asked` is its input."""
    window = asked.get("window")
    whose = "one run" if window is None else f"{asked['budget']}: {window}"
    fields = {"Limit of": one_line(str(whose))}
    if "limit_tokens" in asked:
        fields |= {
            "Used": f"{asked['used_tokens']:,} tokens",
            "Limit": f"{asked['limit_tokens']:,} tokens",
        }
        title, more = "Give more tokens", f"{asked['more_tokens']:,} tokens more"
    else:
        fields |= {"Used": f"${asked['used_cost']}", "Limit": f"${asked['limit_cost']}"}
        title, more = "Let it cost more", f"${asked.get('more_cost')} more"
    if "without_price" in asked:
        title = "Continue without a price"
        more = (
            f"calls of {one_line(str(asked['model']))}, which have no known price and count as $0"
        )
    fields["An approval gives"] = more
    note = Note(
        "A rejection ends the run, and its parents and subagents that wait for the same limit."
    )
    return Review(title, (fields_section("", fields),), (note,))


RUN_REQUESTS = [BudgetRequestKind()]
