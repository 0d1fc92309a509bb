"""The runs below a run: those that it has delegated to, and what these delegated."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from agents.models import Run
from agents.states import RunStatus

MAX_SHOWN = 500
"""Runs of one family that a page, a list or a terminal looks at."""
_AT_WORK = (RunStatus.QUEUED, RunStatus.RUNNING)


def descendants_of(
    run_id: str, runs: QuerySet[Run] | None = None, *, limit: int = MAX_SHOWN
) -> list[Run]:
    """What is below a run, each parent before its children; one query for each level.

    `runs` are those that the asker may see, by default all. What is below one that is not among
    them is left out, too.
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
    """The descendants of a run as a tree is read: each with its own directly below it."""
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
    """Each with `child_count`: how many runs it has delegated to itself."""
    children = Run.objects.filter(parent=OuterRef("pk")).order_by().values("parent")
    counted = children.annotate(total=Count("pk")).values("total")
    return runs.annotate(child_count=Coalesce(Subquery(counted), 0, output_field=IntegerField()))


def goes_on_alone(members: Sequence[Run]) -> bool:
    """Whether any of them is at work, will be, or is woken by the clock: else people must act."""
    return any(
        run.status in _AT_WORK
        or run.wake_at is not None
        or (run.status == RunStatus.PENDING and run.parent_id is None)  # behind another message
        for run in members
    )


def root_of(run: Run) -> Run:
    """The run that a person asked for, of which `run` is a part."""
    while run.parent is not None:
        run = run.parent
    return run
