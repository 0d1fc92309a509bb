"""The origin of a run: a person, a trigger, or a delegating agent."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from agents.events.catalogue.runs import Starter
from agents.kernel.row_hooks import RowHooks
from agents.kernel.triggers import trigger_kinds
from agents.models import Run

PERSON, AGENT = "person", "agent"


def starters() -> list[str]:
    """Return the values of `kind_of_starter`."""
    return [PERSON, *_sources(), AGENT]


def kind_of_starter(run: Run) -> str:
    """Return `person`, `agent` for subagents, or the source of a kind of triggers."""
    if run.parent_id is not None:
        return AGENT
    return run.source if run.source in _sources() else PERSON


def with_trigger_name(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate runs with `trigger_name`, the name of the trigger if it still exists."""
    names = [
        Subquery(kind.model._default_manager.filter(pk=OuterRef("trigger")).values("name")[:1])
        for kind in trigger_kinds()
    ]
    nothing = Value(None, CharField())
    return runs.annotate(trigger_name=Coalesce(*names, nothing) if names else nothing)


def started_by(run: Run) -> Starter:
    """Return `{kind, id, name}`. Id and name are set if the trigger still exists."""
    return _starter(run, _name_of_trigger(run))


def listed_started_by(run: Run) -> Starter:
    """Return `started_by` for a row of `with_trigger_name`, without a query."""
    return _starter(run, run.trigger_name)  # type: ignore[attr-defined]  # annotated


def of_starter(kind: str) -> Q:
    """Return the condition for runs with this `kind_of_starter`. An unknown kind means `person`."""
    if kind == AGENT:
        return Q(parent__isnull=False)
    if kind in _sources():
        return Q(parent=None, source=kind)
    return Q(parent=None) & ~Q(source__in=_sources())


class StarterRows(RowHooks):
    """Adds the trigger to the first event of a run."""

    order = 600

    def started(self, run: Run) -> dict[str, Any]:
        return {} if run.trigger is None else {"started_by": started_by(run)}


def _starter(run: Run, name: str | None) -> Starter:
    return {
        "kind": kind_of_starter(run),
        "id": None if name is None else run.trigger,
        "name": name,
    }


def _name_of_trigger(run: Run) -> str | None:
    for kind in trigger_kinds():
        rows = kind.model._default_manager.filter(pk=run.trigger)
        if (name := rows.values_list("name", flat=True).first()) is not None:
            return name
    return None


def _sources() -> list[str]:
    return [kind.source for kind in trigger_kinds()]
