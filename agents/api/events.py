"""Endpoint for a run's event log, from any seq."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.runs import run_not_found
from agents.api.serializers.events import EventsQuery, EventsShape
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import read_query
from agents.events.read import read_events
from agents.models import TokenScope
from agents.selectors.visible import watchable_runs_for


class RunEvents(ApiView):
    """The endpoint `GET /runs/{id}/events?after=N&limit=M`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("list_events", "Read a run's event log", query=EventsQuery, answer=EventsShape)
    def get(self, request: Request, run_id: str) -> Response:
        query = read_query(EventsQuery, request)
        if not watchable_runs_for(person(request)).filter(pk=run_id).exists():
            raise run_not_found(run_id)
        events = read_events(run_id, after=query["after"], limit=query["limit"])
        next_after = events[-1]["seq"] if events else query["after"]
        return Response({"results": events, "next_after": next_after})
