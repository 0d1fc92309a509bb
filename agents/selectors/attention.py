"""The work of a person: pending requests and failed runs, which need attention, and active runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from agents.models import NEVER_STARTED, ApprovalRequest, Run
from agents.selectors.queue import QueueFilter, pending_for, queue_of
from agents.selectors.visible import Person, runs_for
from agents.states import ACTIVE_RUNS, RunStatus

SHOWN = 5
FAILED_DAYS = 3
"""A failed run is listed for this number of days."""


@dataclass(frozen=True, slots=True)
class Attention:
    """At most `SHOWN` of each kind: oldest requests and newest runs first.

    A run with a pending request is not in `active`: the request has the link to decide.
    """

    requests: list[ApprovalRequest]
    failed: list[Run]
    active: list[Run]

    def __bool__(self) -> bool:
        return bool(self.requests or self.failed or self.active)


def attention_for(person: Person) -> Attention:
    """Return the pending requests that `person` can see, and failed and active runs of `person`."""
    requests = queue_of(person, QueueFilter())
    runs = own_runs(person)
    return Attention(
        requests=list(requests[:SHOWN]),
        failed=list(_failed(runs)[:SHOWN]),
        active=list(_active(runs, person)[:SHOWN]),
    )


def own_runs(person: Person) -> QuerySet[Run]:
    """Return the runs that `person` started, newest first, with the relations for a list."""
    return (
        runs_for(person)
        .filter(owner=person.pk, parent=None)
        .exclude(NEVER_STARTED)
        .select_related("thread__agent")
        .order_by("-created_at", "-pk")
    )


def _active(runs: QuerySet[Run], person: Person) -> QuerySet[Run]:
    """Return the active runs without a request that `person` can see.

    Active runs are all uncounted, and an index covers only uncounted runs.
    """
    active = runs.filter(status__in=ACTIVE_RUNS, uncounted_from__gte=1)
    return active.exclude(pk__in=pending_for(person).order_by().values("run"))


def _failed(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return failed runs of the last days without a later run in the thread."""
    later = Run.objects.filter(
        thread=OuterRef("thread"), parent=None, number__gt=OuterRef("number")
    )
    since = timezone.now() - timedelta(days=FAILED_DAYS)
    failed = runs.filter(status=RunStatus.FAILED, ended_at__gte=since)
    return failed.exclude(Exists(later.exclude(NEVER_STARTED)))
