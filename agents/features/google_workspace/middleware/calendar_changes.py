"""Create, change, delete and answer events. All require approval.

An event's id is made of the run and of the approved content, so creating it again has no effect. A
change names the version of the event that was read (`etag`), and is refused if the event has
changed since.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from agents.features.google_workspace.client.calendar import PRIMARY, Calendars
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.middleware.calendar_times import (
    When,
    Zone,
    as_google,
    problem_of,
)
from agents.features.google_workspace.middleware.inputs import (
    Address,
    CalendarId,
    GoogleInput,
    Id,
    at_most,
    google_tool,
    line,
    text,
    with_google,
)
from agents.hidden_text import one_line
from agents.middleware.base import ToolResult
from agents.middleware.context import ToolContext
from agents.models import Effect

Etag = Annotated[str, line(200, 1)]
Guests = Annotated[list[Address], at_most(200)]
Rules = Annotated[list[Annotated[str, line(500, 1)]], at_most(20)]


class CreateEventInput(GoogleInput):
    summary: Annotated[str, line(1_000, 1)]
    start: When
    end: When
    time_zone: Zone = ""
    description: Annotated[str, text(8_000)] = ""
    location: Annotated[str, line(1_000)] = ""
    attendees: Guests = Field(default_factory=list)
    recurrence: Rules = Field(default_factory=list)
    send_updates: bool = False
    calendar_id: CalendarId = ""

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        _check_times(self.start, self.end, self.time_zone)
        _check_rules(self.recurrence)
        return self


class UpdateEventInput(GoogleInput):
    event_id: Id
    etag: Etag
    summary: Annotated[str, line(1_000, 1)] | None = None
    start: When | None = None
    end: When | None = None
    time_zone: Zone = ""
    description: Annotated[str, text(8_000)] | None = None
    location: Annotated[str, line(1_000)] | None = None
    attendees: Guests | None = None
    send_updates: bool = False
    calendar_id: CalendarId = ""

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise ValueError("Give start and end together.")
        if self.start is not None and self.end is not None:
            _check_times(self.start, self.end, self.time_zone)
        if not _changes(self):
            raise ValueError("No changes were given.")
        return self


class DeleteEventInput(GoogleInput):
    event_id: Id
    etag: Etag
    send_updates: bool = False
    calendar_id: CalendarId = ""


class RespondInput(GoogleInput):
    event_id: Id
    response: Literal["accepted", "declined", "tentative"]
    comment: Annotated[str, line(1_000)] = ""
    calendar_id: CalendarId = ""


async def _create(context: ToolContext, given: CreateEventInput) -> ToolResult:
    event: dict[str, Any] = {
        "summary": given.summary,
        "start": as_google(given.start, given.time_zone),
        "end": as_google(given.end, given.time_zone),
    }
    if given.description:
        event["description"] = given.description
    if given.location:
        event["location"] = given.location
    if given.attendees:
        event["attendees"] = [{"email": guest} for guest in given.attendees]
    if given.recurrence:
        event["recurrence"] = given.recurrence

    def create(google: GoogleSession) -> dict[str, Any]:
        place = given.calendar_id or PRIMARY
        return Calendars(google).create(context.run_id, place, event, given.send_updates)

    return await with_google(context, create)


async def _update(context: ToolContext, given: UpdateEventInput) -> ToolResult:
    def update(google: GoogleSession) -> dict[str, Any]:
        calendars = Calendars(google)
        changes = _changes(given)
        if "attendees" in changes:
            changes["attendees"] = calendars.guests(
                given.calendar_id or PRIMARY, given.event_id, changes["attendees"]
            )
        return calendars.update(
            given.calendar_id or PRIMARY, given.event_id, given.etag, changes, given.send_updates
        )

    return await with_google(context, update)


async def _delete(context: ToolContext, given: DeleteEventInput) -> ToolResult:
    return await with_google(
        context,
        lambda google: Calendars(google).delete(
            given.calendar_id or PRIMARY, given.event_id, given.etag, given.send_updates
        ),
    )


async def _respond(context: ToolContext, given: RespondInput) -> ToolResult:
    return await with_google(
        context,
        lambda google: Calendars(google).respond(
            given.calendar_id or PRIMARY, given.event_id, given.response, given.comment
        ),
    )


async def _describe(
    context: ToolContext, given: UpdateEventInput | DeleteEventInput | RespondInput
) -> str:
    """Return the title and the start of the event: a person cannot know its id."""
    found = await with_google(
        context,
        lambda google: Calendars(google).read(given.calendar_id or PRIMARY, given.event_id),
    )
    if found.is_error:
        return f"Google does not name the event {given.event_id}: {found.content}"
    title, start = (
        one_line(found.content["summary"], 100),
        one_line(str(found.content["start"]), 40),
    )
    return f"{given.event_id} is the event “{title}” of {start}."


def _changes(given: UpdateEventInput) -> dict[str, Any]:
    """Return the given fields in the API's format."""
    found: dict[str, Any] = {
        name: value
        for name in ("summary", "description", "location", "attendees")
        if (value := getattr(given, name)) is not None
    }
    if given.start is not None and given.end is not None:
        found["start"] = as_google(given.start, given.time_zone)
        found["end"] = as_google(given.end, given.time_zone)
    return found


def _check_times(start: str, end: str, zone: str) -> None:
    if problem := problem_of(start, end, zone):
        raise ValueError(problem)


def _check_rules(rules: list[str]) -> None:
    for rule in rules:
        if not rule.startswith(("RRULE:", "RDATE", "EXDATE", "EXRULE:")):
            raise ValueError("recurrence must be lines as RRULE:FREQ=WEEKLY;COUNT=4")


CHANGING = [
    google_tool(
        "create_calendar_event",
        "Make an event: both ends dates or times, the end not included. With send_updates Google "
        "mails the attendees. A person approves it first.",
        CreateEventInput,
        _create,
        Effect.EXTERNAL,
    ),
    google_tool(
        "update_calendar_event",
        "Change what is given of an event; attendees are all of them.",
        UpdateEventInput,
        _update,
        Effect.EXTERNAL,
        _describe,
    ),
    google_tool(
        "delete_calendar_event",
        "Delete an event.",
        DeleteEventInput,
        _delete,
        Effect.EXTERNAL,
        _describe,
    ),
    google_tool(
        "respond_to_calendar_event",
        "Answer an invitation; its organiser sees it.",
        RespondInput,
        _respond,
        Effect.EXTERNAL,
        _describe,
    ),
]
