"""Budgets in the REST API."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Prefetch
from rest_framework import serializers

from agents.doors.rest.managed.fields import Computed, moment_field
from agents.doors.rest.managed.objects import Managed
from agents.doors.rest.managed.views import endpoints
from agents.features.budgets.admin import BudgetAdmin
from agents.features.budgets.models import Allowance, Budget, Period
from agents.features.budgets.scope import window_name
from agents.providers.prices import dollars


def _window(budget: Budget) -> Allowance | None:
    """Return the present window of a budget, if a run has used it."""
    name = window_name(budget.period, settings.TIME_ZONE)
    return next((each for each in budget.windows.all() if each.window == name), None)


def _present_windows() -> tuple[Prefetch[Any]]:
    names = {window_name(period, settings.TIME_ZONE) for period in Period.values}
    return (Prefetch("windows", Allowance.objects.filter(window__in=names)),)


class UseField(serializers.IntegerField):
    """The tokens that are used in the present window."""

    def to_representation(self, value: Any) -> int:
        window = _window(value)
        return 0 if window is None else window.used_tokens


def _used_cost(budget: Budget) -> str:
    window = _window(budget)
    return str(dollars(0 if window is None else window.used_microusd))


BUDGETS = Managed(
    model=Budget,
    admin=BudgetAdmin,
    name="budget",
    plural="budgets",
    rows="budgets",
    what="A limit of tokens or of cost (US dollars) of a user, an agent, or a user with one agent, "
    "for a day or a month. Its user, agent and period cannot change.",
    shown={
        "of": Computed(
            lambda budget: budget.of,
            help_text="The user, agent or webhook that it limits, as text.",
        ),
        "used_tokens": UseField(source="*", help_text="In the present day or month."),
        "used_cost": Computed(_used_cost, help_text="US dollars, in the present day or month."),
        "created_at": moment_field(),
    },
    prefetch=_present_windows,
    filters={
        "agent": "agent__slug",
        "user": f"user__{get_user_model().USERNAME_FIELD}",
        "period": "period",
    },
)

OBJECTS = [BUDGETS]
urlpatterns = endpoints(BUDGETS)
