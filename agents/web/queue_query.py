"""The query string of the queue: filters and the position in the list."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import cast, get_args
from urllib.parse import urlencode

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse

from agents.doors.web.pages import PersonRequest
from agents.kernel.proposals import request_relations
from agents.models import ApprovalRequest
from agents.models.approval import request_kinds
from agents.selectors.queue import Age, QueueFilter, after_row, queue_of
from agents.selectors.visible import approvals_for

PAGE_CARDS = 20
DECIDED = "decided"
LONGEST = 200
FIELDS = ("agent", "tool", "kind", "owner", "run", "age")


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Rows of one page, and the query string of the next page (empty on the last page)."""

    rows: list[ApprovalRequest]
    next_query: str


def filter_of(query: QueryDict) -> QueueFilter:
    """Return the filters in `query`, without invalid values."""
    filters = {name: _word(query.get(name, "")) for name in FIELDS}
    if filters["kind"] not in dict(request_kinds()):
        filters["kind"] = ""
    if filters["age"] not in get_args(Age):
        filters["age"] = ""
    age = cast(Age, filters.pop("age"))
    return QueueFilter(is_pending=query.get("tab") != DECIDED, age=age, **filters)


def query_of(wanted: QueueFilter, **more: str) -> str:
    """Return `wanted` as a query string for a link, without empty values."""
    values = {name: value for name, value in asdict(wanted).items() if name != "is_pending"}
    tab = {} if wanted.is_pending else {"tab": DECIDED}
    parameters = {name: value for name, value in {**tab, **values, **more}.items() if value}
    return f"?{urlencode(parameters)}" if parameters else "?"


def page_of(
    person: AbstractBaseUser, wanted: QueueFilter, query: QueryDict, *, size: int = PAGE_CARDS
) -> QueuePage:
    """Return the page after the row in `?after=`."""
    rows = queue_of(person, wanted)
    location = _place(wanted, query.get("after", ""))
    if location is not None:
        rows = after_row(rows, wanted, *location)
    found = list(rows[: size + 1])
    if len(found) <= size:
        return QueuePage(found, "")
    last = found[size - 1]
    after = last.pk
    if not wanted.is_pending:
        after = f"{last.pk}:{last.ended_at.isoformat()}"  # type: ignore[attr-defined]  # annotated
    return QueuePage(found[:size], query_of(wanted, after=after))


def card_rows(person: AbstractBaseUser) -> QuerySet[ApprovalRequest]:
    """Return all requests that `person` can see, pending or not, with the relations of a card."""
    return approvals_for(person).select_related(
        "run__agent_version__agent",
        "run__owner",
        "run__thread",
        "tool_call",
        *request_relations(),
        "first_approver",
        "decided_by",
    )


def back_to(request: PersonRequest) -> str:
    """Return the URL of the queue page that a form came from. It is always a URL of the queue."""
    query = QueryDict(request.POST.get("back", "").lstrip("?")[:2000])
    after = {"after": query["after"]} if query.get("after") else {}
    return f"{reverse('web:approvals')}{query_of(filter_of(query), **after)}"


def _place(wanted: QueueFilter, text: str) -> tuple[str, datetime | None] | None:
    key, _, moment = _word(text).partition(":")
    if not key:
        return None
    if wanted.is_pending:
        return key, None
    try:
        ended_at = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (key, ended_at) if ended_at.tzinfo else None


def _word(text: str) -> str:
    return text.replace("\x00", "").strip()[:LONGEST]
