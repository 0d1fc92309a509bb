"""`vel budgets`: limits for a day or a month, and their use."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.conf import settings
    from rich.text import Text

    from agents.doors.cli.console import print_table
    from agents.doors.cli.local_user import local_user
    from agents.features.budgets.models import Allowance, Budget
    from agents.features.budgets.queries import budgets_for
    from agents.features.budgets.scope import microusd, window_name
    from agents.providers.prices import dollars


@click.group(short_help="List budgets.")
def budgets() -> None:
    """Budgets of agents and users. Create them in the admin or over REST."""


@budgets.command("list")
@with_database
@json_option
def list_budgets(as_json: bool) -> None:
    """List your own budgets, or all if you may read them, with their present use."""
    rows = budgets_for(local_user()).select_related("agent", "user").order_by("created_at", "pk")
    windows = [(budget, _present(budget)) for budget in rows]
    if as_json:
        for budget, window in windows:
            print(json.dumps(as_data(budget, window)))
        return
    if not windows:
        print("There are no budgets that you can read.", file=sys.stderr)
        return
    print_table(
        ("WINDOW", "TOKENS", "COST", "OF"),
        (
            (
                window.window,
                _used(f"{window.used_tokens:,}", window.token_limit, "{:,}".format),
                _used(_cost(window.used_microusd), window.microusd_limit, _cost),
                Text(one_line(budget.of, 60)),
            )
            for budget, window in windows
        ),
    )


def as_data(budget: Budget, window: Allowance) -> dict[str, object]:
    """Return a budget as data. The window's limits include extra amounts; None: no limit."""
    limit = window.microusd_limit
    return {
        "id": budget.pk,
        "agent": None if budget.agent is None else budget.agent.slug,
        "user": None if budget.user is None else budget.user.get_username(),
        "period": budget.period,
        "window": window.window,
        "tokens": window.used_tokens,
        "max_tokens": window.token_limit,
        "cost": dollars(window.used_microusd),
        "max_cost": None if limit is None else dollars(limit),
    }


def _present(budget: Budget) -> Allowance:
    """Return the present window. It may not be stored yet if it has no use."""
    name = window_name(budget.period, settings.TIME_ZONE)
    found = Allowance.objects.filter(budget=budget, window=name).first()
    return found or Allowance(
        budget=budget, window=name, max_tokens=budget.max_tokens, max_microusd=microusd(budget)
    )


def _used(used: str, limit: int | None, form: Callable[[int], str]) -> str:
    return used if limit is None else f"{used} of {form(limit)}"


def _cost(microusd: int) -> str:
    return f"${dollars(microusd)}"


COMMANDS = (budgets,)
