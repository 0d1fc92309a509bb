"""The approval queue of one person: pending and decided requests, and a version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.contrib.auth import get_user_model
from django.db.models import Case, DateTimeField, F, Q, QuerySet, When
from django.db.models.functions import Coalesce, Length
from django.db.models.lookups import LessThanOrEqual
from django.utils import timezone

from agents.kernel.proposals import request_relations
from agents.models import ApprovalRequest, Run
from agents.models.json_text import JSONTextField
from agents.selectors.visible import Person, approvals_for
from agents.states import ApprovalStatus

Age = Literal["", "hour", "day", "expiring"]
SOON = timedelta(hours=1)
"""Requests that expire within this time are shown as expiring."""
_AGES = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
MAX_DEPTH = 16
"""Maximum number of levels above a run to look up."""


INPUTS = ("input", "edited_input")
SHORT = 600_000
"""Characters of JSON in the database. It may have six for one character of the text."""


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Filters of the queue; "" for any.

    `agent` is the slug of an agent, `owner` the username of the run's owner, `run` the start of a
    run's id. `tool` and `kind` are exact names. `age`: `hour` and `day` for requests older than
    that, `expiring` for those that expire within the next hour.
    """

    is_pending: bool = True
    agent: str = ""
    tool: str = ""
    kind: str = ""
    owner: str = ""
    run: str = ""
    age: Age = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The number of pending requests, and a version that changes when they change."""

    count: int
    version: str


def pending_for(person: Person) -> QuerySet[ApprovalRequest]:
    """Return the pending requests that `person` can see."""
    return approvals_for(person).filter(status=ApprovalStatus.PENDING)


def waiting_for(person: Person) -> Waiting:
    """Return the number and the version of the requests of `pending_for`, with one query."""
    rows = pending_for(person).order_by("id").values_list("id", "first_approver_id")
    return _waiting(rows)


def waiting_for_all() -> Waiting:
    """Return `waiting_for` for all people, only to detect changes. Do not show it to anybody."""
    rows = ApprovalRequest.objects.filter(status=ApprovalStatus.PENDING).order_by("id")
    return _waiting(rows.values_list("id", "first_approver_id"))


def _waiting(rows: Iterable[tuple[str, int | None]]) -> Waiting:
    digest = hashlib.sha256()
    count = 0
    for key, first_approver in rows:
        digest.update(f"{key}:{first_approver};".encode())
        count += 1
    return Waiting(count, digest.hexdigest()[:16])


def with_short_inputs(
    requests: QuerySet[ApprovalRequest], limit: int = SHORT
) -> QuerySet[ApprovalRequest]:
    """Return `requests` with only the inputs of at most `limit` characters of JSON.

    Call `take_inputs` for each row to set them. Other inputs are loaded on access.
    """
    return requests.defer(*INPUTS).annotate(
        **{f"{name}_size": Length(name) for name in INPUTS},
        **{
            f"short_{name}": Case(
                When(LessThanOrEqual(Length(name), limit), then=F(name)),
                output_field=JSONTextField(null=True),
            )
            for name in INPUTS
        },
    )


def take_inputs(row: ApprovalRequest) -> set[str]:
    """Set the inputs of a row of `with_short_inputs`, and return their names.

    Other inputs are loaded on access.
    """
    given = row.__dict__
    for name in INPUTS:
        short, size = given.pop(f"short_{name}", None), given.pop(f"{name}_size", 0)
        if short is not None or size is None:
            setattr(row, name, short)
    return {name for name in INPUTS if name in given}


def queue_of(person: Person, wanted: QueueFilter) -> QuerySet[ApprovalRequest]:
    """Return the requests for `person` that match: oldest pending first, or last ended first.

    Rows have `ended_at` and all relations of a card, except the parent runs. Use `take_inputs` for
    the inputs.
    """
    requests = with_short_inputs(approvals_for(person).filter(_condition(wanted)))
    requests = requests.select_related(
        "run__agent_version__agent",
        "run__owner",
        "run__thread",
        "tool_call",
        *request_relations(),
        "first_approver",
        "decided_by",
    ).defer(*INPUTS, "tool_call__result", "tool_call__input", "tool_call__edited_input")
    if wanted.is_pending:
        return requests.filter(status=ApprovalStatus.PENDING).order_by("id")
    # Cancelled and superseded requests have no end time.
    ended_at = Coalesce(
        "decided_at",
        Case(When(status=ApprovalStatus.EXPIRED, then=F("expires_at"))),
        "created_at",
        output_field=DateTimeField(),
    )
    ended = requests.exclude(status=ApprovalStatus.PENDING).annotate(ended_at=ended_at)
    return ended.order_by("-ended_at", "-id")


def after_row(
    requests: QuerySet[ApprovalRequest], wanted: QueueFilter, key: str, ended_at: datetime | None
) -> QuerySet[ApprovalRequest]:
    """Return the rows of `queue_of` after the row with the id `key`.

    `ended_at` is that of this row, if `wanted` is for requests that are not pending.
    """
    if wanted.is_pending:
        return requests.filter(id__gt=key)
    return requests.filter(Q(ended_at__lt=ended_at) | Q(ended_at=ended_at, id__lt=key))


def _condition(wanted: QueueFilter) -> Q:
    found = Q()
    if wanted.agent:
        found &= Q(run__agent_version__agent__slug=wanted.agent)
    if wanted.tool:
        found &= Q(tool=wanted.tool)
    if wanted.kind:
        found &= Q(kind=wanted.kind)
    if wanted.owner:
        found &= Q(**{f"run__owner__{get_user_model().USERNAME_FIELD}": wanted.owner})
    if wanted.run:
        found &= Q(run__id__startswith=wanted.run)
    now = timezone.now()
    if wanted.age == "expiring":
        found &= Q(expires_at__lte=now + SOON)
    elif wanted.age:
        found &= Q(created_at__lte=now - _AGES[wanted.age])
    return found


def names_in_queue(person: Person) -> dict[str, list[str]]:
    """Return the values for filters: `agents` (slugs), `tools` and `owners` of pending requests."""
    rows = set(
        pending_for(person)
        .order_by()
        .values_list(
            "run__agent_version__agent__slug",
            "tool",
            f"run__owner__{get_user_model().USERNAME_FIELD}",
        )
        .distinct()
    )
    names = ("agents", "tools", "owners")
    return {name: sorted({row[position] for row in rows}) for position, name in enumerate(names)}


def paths_of_runs(runs: Iterable[Run]) -> dict[str, list[str]]:
    """Return for each run the names of the agents from the root run down to it, by run id.

    Takes one query for each level.
    """
    above: dict[str, tuple[str, str | None]] = {}
    missing: set[str] = set()
    found = list(runs)
    for run in found:
        above[run.pk] = (run.spec["name"], run.parent_id)
        missing |= {run.parent_id} if run.parent_id else set()
    for _ in range(MAX_DEPTH):
        missing -= above.keys()
        if not missing:
            break
        rows = Run.objects.filter(pk__in=missing).values_list(
            "pk", "agent_version__spec__name", "subagent", "parent_id"
        )
        missing = set()
        for key, name, subagent, parent in rows:
            above[key] = (subagent or name, parent)
            missing |= {parent} if parent else set()
    return {run.pk: _path(run.pk, above) for run in found}


def _path(key: str | None, above: dict[str, tuple[str, str | None]]) -> list[str]:
    names: list[str] = []
    while key in above:
        assert key is not None
        name, key = above[key]
        names.insert(0, name)
    return names
