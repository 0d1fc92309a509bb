"""Google Calendar tools: read calendars, events and busy times; create, change and answer events.

Tools that read need no approval; tools that change a calendar require it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agents.features.google_workspace.client.calendar import PRIMARY, Calendars
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.middleware.calendar_times import Moment, Zone
from agents.features.google_workspace.middleware.inputs import (
    CalendarId,
    GoogleInput,
    Id,
    PageToken,
    at_most,
    google_tool,
    line,
    with_google,
)
from agents.middleware.base import ToolResult
from agents.middleware.context import ToolContext
from agents.models import Effect


class NoInput(GoogleInput):
    pass


class ListEventsInput(GoogleInput):
    start: Moment | None = None
    end: Moment | None = None
    query: Annotated[str, line(500)] = ""
    calendar_id: CalendarId = ""
    time_zone: Zone = ""
    limit: int = Field(default=25, ge=1, le=250)
    page: PageToken = ""


class ReadEventInput(GoogleInput):
    event_id: Id
    calendar_id: CalendarId = ""


class BusyInput(GoogleInput):
    start: Moment
    end: Moment
    calendar_ids: Annotated[list[Id], at_most(50)] = Field(default_factory=list)


async def _calendars(context: ToolContext, given: NoInput) -> ToolResult:
    return await with_google(context, lambda google: Calendars(google).every())


async def _events(context: ToolContext, given: ListEventsInput) -> ToolResult:
    def ask(google: GoogleSession) -> dict[str, Any]:
        query = {
            "timeMin": given.start,
            "timeMax": given.end,
            "q": given.query or None,
            "timeZone": given.time_zone or None,
            "maxResults": given.limit,
            "pageToken": given.page or None,
        }
        return Calendars(google).events(given.calendar_id or PRIMARY, query)

    return await with_google(context, ask)


async def _read(context: ToolContext, given: ReadEventInput) -> ToolResult:
    return await with_google(
        context, lambda google: Calendars(google).read(given.calendar_id or PRIMARY, given.event_id)
    )


async def _busy(context: ToolContext, given: BusyInput) -> ToolResult:
    return await with_google(
        context,
        lambda google: Calendars(google).busy(
            given.calendar_ids or [PRIMARY], given.start, given.end
        ),
    )


READING = [
    google_tool("list_calendars", "List calendars.", NoInput, _calendars, Effect.READ),
    google_tool(
        "list_calendar_events",
        "List events between two times (2026-11-23T09:00:00+01:00), or search them; page: "
        "next_page of the last answer.",
        ListEventsInput,
        _events,
        Effect.READ,
    ),
    google_tool(
        "read_calendar_event", "Read an event, with its etag.", ReadEventInput, _read, Effect.READ
    ),
    google_tool(
        "find_busy_times",
        "When calendars, or people by address, are busy.",
        BusyInput,
        _busy,
        Effect.READ,
    ),
]
