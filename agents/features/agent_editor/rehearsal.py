"""The effect of unsaved rules on past calls of an agent that the person may read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from agents.hidden_text import visible
from agents.middleware.rehearsal import MAX_DAYS, Example, Rehearsal, rehearse, with_policy
from agents.models import Agent
from agents.selectors.visible import Person, runs_for

POLICY_FIELDS = ("approval_rules", "interrupt_on")
DAYS = 30
MOST_CALLS = 5_000
LATEST = 20
WORDS = {"allow": _("runs"), "ask": _("asks"), "deny": _("denied")}


class RehearsalForm(forms.Form):
    days = forms.IntegerField(min_value=1, max_value=MAX_DAYS)


def rehearsed(agent: Agent, user: Person, values: Mapping[str, Any], days: int) -> Rehearsal:
    """Return the effect of the policy in `values` on calls in runs that `user` may read.

    Calls in other runs are not counted, because the number of calls that fit a rule reveals facts
    about their inputs. Raises `InvalidRequest`.
    """
    policy = {name: values[name] for name in POLICY_FIELDS if name in values}
    return rehearse(
        agent,
        with_policy(agent, policy),
        days=days,
        limit=MOST_CALLS,
        readable=runs_for(user),
        only_readable=True,
        latest=LATEST,
    )


def shown_rehearsal(found: Rehearsal | None, problem: str = "") -> dict[str, Any]:
    """Return the result as JSON data for the page and its script. The texts are safe to display."""
    if found is None:
        return {"problem": visible(problem)}
    return {
        "calls": found.calls,
        "changed": found.changed,
        "days": found.days,
        "is_cut": found.cut,
        "tools": [
            {
                "tool": visible(tool),
                "changed": counts.changed,
                "counts": [
                    f"{counts.before[action]} → {counts.after[action]}"
                    for action in ("allow", "ask", "deny")
                ],
            }
            for tool, counts in found.tools.items()
        ],
        "changes": [_shown(example) for example in found.examples],
        "latest": [_shown(example) for example in found.latest],
    }


def _shown(example: Example) -> dict[str, Any]:
    return {
        "url": reverse("web:run", args=[example.run_id]),
        "tool": visible(example.tool),
        "input": visible(example.input),
        "before": str(WORDS[example.before]),
        "after": str(WORDS[example.after]),
        "is_changed": example.before != example.after,
        "by": visible(example.source),
    }
