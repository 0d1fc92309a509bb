"""Pages of the approval queue: pending requests, decided requests and one request."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, cast, get_args
from urllib.parse import urlencode

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from django.http import HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.hidden_text import visible
from agents.kernel.proposals import request_relations
from agents.models import ApprovalRequest
from agents.models.approval import request_kinds
from agents.selectors.queue import (
    Age,
    QueueFilter,
    after_row,
    names_in_queue,
    pending_for,
    queue_of,
    waiting_for,
)
from agents.selectors.visible import approvals_for
from agents.web.cards import Card, card_json, cards_of

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
    """Return `wanted` and the parameters `more` as a query string for a link.

    Empty values are left out.
    """
    values = {name: value for name, value in asdict(wanted).items() if name != "is_pending"}
    tab = {} if wanted.is_pending else {"tab": DECIDED}
    parameters = {name: value for name, value in {**tab, **values, **more}.items() if value}
    return f"?{urlencode(parameters)}" if parameters else "?"


def page_of(
    person: AbstractBaseUser, wanted: QueueFilter, query: QueryDict, *, size: int = PAGE_CARDS
) -> QueuePage:
    """Return at most `size` requests that match `wanted`, after the row in `?after=`.

    Without a valid `?after=`, the first ones.
    """
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


AGES = (
    ("", _("any age")),
    ("hour", _("waits over an hour")),
    ("day", _("waits over a day")),
    ("expiring", _("expires within an hour")),
)
LATEST = 20
"""Number of pending requests that notifications can be about."""
SHOWN = 100
"""Maximum number of characters of a name in a notification."""
KNOWN = 4 * PAGE_CARDS
"""Maximum number of cards that a page can list in `?known=`."""


@page
@require_safe
def queue(request: PersonRequest) -> HttpResponse:
    """Show the queue. The query has `?tab=decided`, filters and `?after=`; see `filter_of`."""
    wanted = filter_of(request.GET)
    found = page_of(request.user, wanted, request.GET)
    waiting = waiting_for(request.user)
    context: dict[str, Any] = {
        "cards": cards_of(found.rows, request.user),
        "wanted": wanted,
        "waiting": waiting,
        "names": names_in_queue(request.user),
        "kinds": request_kinds(),
        "ages": AGES,
        "is_filtered": wanted not in (QueueFilter(), QueueFilter(is_pending=False)),
        "fitting": queue_of(request.user, wanted).count() if wanted.is_pending else None,
        "pending_query": query_of(_on_tab(wanted, is_pending=True)),
        "decided_query": query_of(_on_tab(wanted, is_pending=False)),
        "first_query": query_of(wanted) if request.GET.get("after") else "",
        "next_query": found.next_query,
        "back": request.GET.urlencode(),
    }
    return render(request, "vel_approvals/approvals.html", context)


@page
@require_safe
def live(request: PersonRequest) -> JsonResponse:
    """Return the page as JSON. `?known=` lists the cards that the browser has, as `id.stamp`.

    Cards with an unchanged stamp are omitted.
    """
    wanted = filter_of(request.GET)
    found = page_of(request.user, wanted, request.GET)
    cards = cards_of(found.rows, request.user)
    known = set(request.GET.get("known", "").split(",")[:KNOWN])
    return JsonResponse(
        {
            "pending": waiting_for(request.user).count,
            "fitting": queue_of(request.user, wanted).count() if wanted.is_pending else None,
            "order": [card.id for card in cards],
            "cards": [card_json(card) for card in cards if _name(card) not in known],
            "ended": _ended(request, {card.id for card in cards}, known),
            "next_query": found.next_query,
        }
    )


@page
@require_safe
def waiting(request: PersonRequest) -> JsonResponse:
    """Return the latest pending requests for notifications: only their agent and their tool."""
    rows = pending_for(request.user).order_by("-pk")
    wanted = ("pk", "tool", "run__agent_version__agent__name")
    found = [
        {
            "id": key,
            "agent": visible(agent)[:SHOWN],
            "tool": visible(tool)[:SHOWN],
            "url": reverse("web:approval", args=[key]),
        }
        for key, tool, agent in rows.values_list(*wanted)[:LATEST]
    ]
    return JsonResponse({"requests": found})


@page
@require_safe
def one(request: PersonRequest, request_id: str) -> HttpResponse:
    """Show one request, of any size. `?as=json` returns the card as data."""
    row = get_object_or_404(card_rows(request.user), pk=request_id)
    [card] = cards_of([row], request.user, opened=True)
    if request.GET.get("as") == "json":
        return JsonResponse(card_json(card))
    return render(request, "vel_approvals/approval.html", {"card": card, "back": ""})


def _ended(request: PersonRequest, displayed: set[str], known: set[str]) -> dict[str, str]:
    """Return the outcome texts, by request id, of ended requests that the page still shows."""
    gone = {name.partition(".")[0] for name in known if "\x00" not in name} - displayed - {""}
    if not gone:
        return {}
    rows = list(card_rows(request.user).filter(pk__in=gone))
    cards = cards_of(rows, request.user, opened=False)
    return {card.id: card.outcome.text for card in cards if card.outcome is not None}


def _name(card: Card) -> str:
    return f"{card.id}.{card.stamp}"


def _on_tab(wanted: QueueFilter, *, is_pending: bool) -> QueueFilter:
    """Return the same filters for another tab. The age filter applies to pending requests only."""
    return QueueFilter(
        is_pending=is_pending,
        agent=wanted.agent,
        tool=wanted.tool,
        kind=wanted.kind,
        owner=wanted.owner,
        run=wanted.run,
        age=wanted.age if is_pending else "",
    )
