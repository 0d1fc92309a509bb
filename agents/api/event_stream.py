"""Endpoint for a run's events as server-sent events, from any seq and then live."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import ClassVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from agents.api.runs import run_not_found
from agents.api.serializers.event_stream import EventStreamQuery
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import Content, Header, operation
from agents.doors.rest.serializers import read_query
from agents.doors.rest.streaming import Access, RightEnded, event_stream, lasting, take_slot
from agents.events.read import MAX_SEQ, RunNotFound
from agents.events.stored import StoredEvent
from agents.events.tail import tail
from agents.events.tree import follow_tree
from agents.models import RunEvent, TokenScope
from agents.selectors.visible import Person, watchable_runs_for
from agents.services.errors import InvalidRequest

BEGINNING = "retry: 2000\n\n"
PING = ": ping\n\n"
END = "event: end\ndata: {}\n\n"

LAST_EVENT_ID = Header(
    "Last-Event-ID", "The seq of the last event that you have; it wins over `after`."
)


class RunEventStream(ApiView):
    """The endpoint `GET /runs/{id}/events/stream?after=N`: events until the run has ended.

    The `id` of an event is its seq, so an `EventSource` continues where it was after a reconnect.
    After the end, a 204 makes it stop. `tree` adds the events of subagents, which have no `id`.
    """

    scopes: ClassVar = {"GET": TokenScope.READ}
    http_method_names = ["get"]

    @operation(
        "stream_events",
        "Follow a run's events (server-sent)",
        query=EventStreamQuery,
        answers={200: Content(("text/event-stream",)), 204: None},
        headers=(LAST_EVENT_ID,),
        description="204: the run has ended and you have all of it.",
    )
    def get(self, request: Request, run_id: str) -> HttpResponseBase:
        query = read_query(EventStreamQuery, request)
        after = _last_event_id(request, query["after"])
        user = person(request)
        run = watchable_runs_for(user).filter(pk=run_id).first()
        if run is None:
            raise run_not_found(run_id)
        # The status is read before the events: the events of an ended run are complete.
        if run.has_ended and not RunEvent.objects.filter(run=run, seq__gt=after).exists():
            return HttpResponse(status=204)
        slot = take_slot(request)
        access = Access(request, partial(may_watch, run_id))
        if query["tree"]:
            events = follow_tree(
                run_id,
                positions={**query["at"], run_id: after},
                brief=query["tree"] == "brief",
                may_follow=lambda child: access.holds_for(partial(may_watch, child)),
            )
        else:
            events = tail.follow_stored(run_id, after=after)
        return event_stream(_frames(run_id, events, access), slot)


def may_watch(run_id: str, user: Person) -> bool:
    return watchable_runs_for(user).filter(pk=run_id).exists()


def _last_event_id(request: Request, after: int) -> int:
    """Return the last seq that an `EventSource` has, from its header, or `after`."""
    given = request.headers.get("Last-Event-ID")
    if not given:
        return after
    if not (given.isascii() and given.isdigit() and len(given) < 20 and int(given) <= MAX_SEQ):
        raise InvalidRequest(
            "Last-Event-ID must be the seq of an event. Remove the header to start at `after`."
        )
    return int(given)


async def _frames(
    run_id: str, events: AsyncGenerator[StoredEvent, None], access: Access
) -> AsyncGenerator[str, None]:
    yield BEGINNING
    try:
        async with aclosing(lasting(events, access)) as items:
            async for event in items:
                yield PING if event is None else _frame(run_id, event)
        yield END
    except RightEnded as ended:
        yield _closed(ended.code)
    except RunNotFound:
        yield _closed("not_found")


def _frame(run_id: str, event: StoredEvent) -> str:
    # The client would take the seq of a subagent's event for one of this run.
    known = f"id: {event.seq}\n" if event.run_id == run_id else ""
    return f"{known}data: {event.frame}\n\n"


def _closed(code: str) -> str:
    return f'event: closed\ndata: {{"code":"{code}"}}\n\n'
