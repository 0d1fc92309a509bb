"""`vel budgets list`: the visible budgets, with their current use."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission, User

from agents.doors.cli.local_user import local_user
from agents.features.budgets.actions import save_budget
from agents.features.budgets.models import Allowance, Budget
from agents.models import Agent
from tests.velproject.in_process import call


@pytest.mark.django_db
def test_ones_own_and_all_with_the_permission(capsys: pytest.CaptureFixture[str]) -> None:
    def shown() -> list[dict[str, object]]:
        call("budgets", "list", "--json")
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    me, other = local_user(), User.objects.create_user("someone\u202eelse")
    agent = Agent.objects.create(slug="budgeted")
    call("budgets", "list")
    assert "no budget" in capsys.readouterr().err
    mine = save_budget(Budget(user=me, max_tokens=5_000, max_cost=Decimal("1.5")))
    save_budget(Budget(user=other, agent=agent, period="day", max_cost=Decimal(2)))
    window = Allowance.objects.get(budget=mine)
    window.used_tokens, window.used_microusd, window.extra_tokens = 1_100, 9_000, 1_000
    window.save()
    (row,) = shown()
    assert row == {
        "id": mine.pk, "agent": None, "user": me.username, "period": "month",
        "window": window.window, "tokens": 1_100, "max_tokens": 6_000, "cost": "0.009",
        "max_cost": "1.50",
    }  # fmt: skip
    me.user_permissions.add(Permission.objects.get(codename="view_budget"))
    Allowance.objects.exclude(budget=mine).delete()  # as on a new day
    assert [(row["user"], row["agent"], row["max_tokens"]) for row in shown()] == [
        (me.username, None, 6_000),
        (other.username, "budgeted", None),
    ]
    call("budgets", "list")
    text = capsys.readouterr().out
    assert "1,100 of 6,000" in text
    assert "$0.009 of $1.50" in text
    assert "\u202e" not in text
