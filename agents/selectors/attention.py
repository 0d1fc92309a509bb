"""What a person should look at first: requests that wait, own runs that failed, those at work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from agents.models import ApprovalRequest, Run
from agents.selectors.queue import QueueFilter, queue_of
from agents.selectors.visible import Person, runs_for
from agents.states import ACTIVE_RUNS, RunStatus

SHOWN = 5
FAILED_DAYS = 3
"""How long a failed run asks for attention."""


@dataclass(frozen=True, slots=True)
class Attention:
    """At most `SHOWN` of each, what waits longest and what is newest first."""

    requests: list[ApprovalRequest]
    failed: list[Run]
    active: list[Run]

    def __bool__(self) -> bool:
        return bool(self.requests or self.failed or self.active)


def attention_for(person: Person) -> Attention:
    """Of the queue of `person`, and of the runs that `person` started."""
    requests = queue_of(person, QueueFilter())
    runs = own_runs(person)
    return Attention(
        requests=list(requests[:SHOWN]),
        failed=list(_failed(runs)[:SHOWN]),
        active=list(_active(runs)[:SHOWN]),
    )


def own_runs(person: Person) -> QuerySet[Run]:
    """Runs that `person` started, newest first, with what a line about each shows."""
    return (
        runs_for(person)
        .filter(owner=person.pk, parent=None)
        .select_related("thread__agent")
        .order_by("-created_at", "-pk")
    )


def _active(runs: QuerySet[Run]) -> QuerySet[Run]:
    """All open runs are uncounted: that leads to the index which has only these."""
    return runs.filter(status__in=ACTIVE_RUNS, uncounted_from__gte=1)


def _failed(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Those of the last days after which nobody went on with the conversation."""
    later = Run.objects.filter(
        thread=OuterRef("thread"), parent=None, number__gt=OuterRef("number")
    )
    since = timezone.now() - timedelta(days=FAILED_DAYS)
    return runs.filter(status=RunStatus.FAILED, ended_at__gte=since).exclude(Exists(later))
