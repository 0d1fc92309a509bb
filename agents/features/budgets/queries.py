"""Which budgets a person may read and change."""

from __future__ import annotations

from django.db.models import QuerySet

from agents.features.budgets.models import Budget
from agents.selectors.visible import Person
from agents.services.agent_definitions.rights import has_permission

CHANGE_BUDGETS = "vel_budgets.change_budget"
VIEW_BUDGETS = "vel_budgets.view_budget"


def may_change_budgets(user: Person) -> bool:
    """Return whether `user` may change the limits of users and agents."""
    return user.is_active and has_permission(user, CHANGE_BUDGETS)


def budgets_for(user: Person) -> QuerySet[Budget]:
    """Return the budgets that `user` may read: all with the permission, else the user's own."""
    may_view = user.is_active and has_permission(user, VIEW_BUDGETS)
    if may_view or may_change_budgets(user):
        return Budget.objects.all()
    return Budget.objects.filter(user=user.pk) if user.is_authenticated else Budget.objects.none()
