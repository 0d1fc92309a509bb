"""What began a run: a person, a schedule, a webhook, or an agent that delegated."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from agents.events.catalogue.runs import Starter
from agents.kernel.row_hooks import RowHooks
from agents.models import Run

STARTERS = ("person", "schedule", "hook", "agent")


def kind_of_starter(run: Run) -> str:
    """One of `STARTERS`. Subagents of a scheduled run are an agent's all the same."""
    if run.parent_id is not None:
        return "agent"
    return run.source if run.source in ("schedule", "hook") else "person"


def started_by(run: Run) -> Starter:
    """`{kind, id, name}`; the id and name of a schedule or webhook that is still there."""
    trigger = run.schedule or run.hook
    return {
        "kind": kind_of_starter(run),
        "id": trigger.pk if trigger is not None else None,
        "name": trigger.name if trigger is not None else None,
    }


def of_starter(kind: str) -> Q:
    """The runs that this kind began."""
    if kind == "agent":
        return Q(parent__isnull=False)
    if kind in ("schedule", "hook"):
        return Q(parent=None, source=kind)
    return Q(parent=None) & ~Q(source__in=("schedule", "hook"))


class StarterRows(RowHooks):
    """The first event of a run tells which schedule or webhook began it."""

    order = 600

    def started(self, run: Run) -> dict[str, Any]:
        by_person = run.schedule_id is None and run.hook_id is None
        return {} if by_person else {"started_by": started_by(run)}
