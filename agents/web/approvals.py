"""Pages of the approval queue: pending requests, decided requests and one request."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.models.approval import request_kinds
from agents.selectors.queue import QueueFilter, names_in_queue, queue_of, waiting_for
from agents.web.cards import Card, card_json, cards_of
from agents.web.queue_query import PAGE_CARDS, card_rows, filter_of, page_of, query_of

AGES = (
    ("", "any age"),
    ("hour", "waits over an hour"),
    ("day", "waits over a day"),
    ("expiring", "expires within an hour"),
)
KNOWN = 4 * PAGE_CARDS
"""Maximum number of cards that a page can list in `?known=`."""


@page
@require_safe
def queue(request: PersonRequest) -> HttpResponse:
    """Show the queue. The query has `?tab=decided`, filters and `?after=`; see `queue_query`."""
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
    return render(request, "web/approvals.html", context)


@page
@require_safe
def live(request: PersonRequest) -> JsonResponse:
    """Return the page as JSON, without the cards listed in `?known=` with their current stamps."""
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
def one(request: PersonRequest, request_id: str) -> HttpResponse:
    """Show one request, of any size. `?as=json` returns the card as data."""
    row = get_object_or_404(card_rows(request.user), pk=request_id)
    [card] = cards_of([row], request.user, opened=True)
    if request.GET.get("as") == "json":
        return JsonResponse(card_json(card))
    return render(request, "web/approval.html", {"card": card, "back": ""})


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
