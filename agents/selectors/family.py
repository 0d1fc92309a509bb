"""Queries for the descendants of a run: delegated runs, and runs that these delegated."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from agents.models import Run
from agents.states import RunStatus

MAX_SHOWN = 500
"""Maximum number of runs of one family on a page, in a list or on a terminal."""
_AT_WORK = (RunStatus.QUEUED, RunStatus.RUNNING)


def descendants_of(
    run_id: str, runs: QuerySet[Run] | None = None, *, limit: int = MAX_SHOWN
) -> list[Run]:
    """Return the descendants of a run, parents before children, with one query for each level.

    At most `limit` runs. `runs` are the visible runs, by default all. Descendants of invisible runs
    are omitted.
    """
    seen = Run.objects.all() if runs is None else runs
    found: list[Run] = []
    level: Collection[str] = [run_id]
    while level and len(found) < limit:
        children = list(seen.filter(parent__in=level).order_by("pk")[: limit - len(found)])
        found += children
        level = [child.pk for child in children]
    return found


def in_tree_order(run_id: str, members: Sequence[Run]) -> list[Run]:
    """Return `members`, the descendants of the run `run_id`, in depth-first order."""
    below: dict[str | None, list[Run]] = {}
    for member in members:
        below.setdefault(member.parent_id, []).append(member)
    found: list[Run] = []
    left = below.get(run_id, [])[::-1]
    while left:
        member = left.pop()
        found.append(member)
        left += below.get(member.pk, [])[::-1]
    return found


def with_child_count(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate runs with `child_count`, the number of runs that they delegated."""
    children = Run.objects.filter(parent=OuterRef("pk")).order_by().values("parent")
    counted = children.annotate(total=Count("pk")).values("total")
    return runs.annotate(child_count=Coalesce(Subquery(counted), 0, output_field=IntegerField()))


def goes_on_alone(members: Sequence[Run]) -> bool:
    """Return whether any of these runs continues without a person's decision.

    Such a run is executed or queued, is woken by the clock, or follows another run of its thread.
    """
    return any(
        run.status in _AT_WORK
        or run.wake_at is not None
        or (run.status == RunStatus.PENDING and run.parent_id is None)  # waits for another run
        for run in members
    )


def root_of(run: Run) -> Run:
    """Return the run without a parent that `run` belongs to."""
    while run.parent is not None:
        run = run.parent
    return run
