"""Calls of the Google Calendar API (v3). Every method raises `GoogleFailed`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from agents.features.google_workspace.client import access
from agents.features.google_workspace.client.errors import GoogleFailed
from agents.features.google_workspace.client.plain_text import from_html, plain
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.settings import GoogleSettings

PRIMARY = "primary"
"""The id of each account's own calendar."""
PAGE = 250
MAX_PAGES = 8
_SAME = 5
"""Number of times that the same event may be created and deleted in one run."""


def _address(*parts: str) -> str:
    """Return a URL of the API.

    The parts are quoted, so that an id from the model cannot change the path.
    """
    root = GoogleSettings.now().CALENDAR_URL.rstrip("/")
    return f"{root}/" + "/".join(quote(part, safe="") for part in parts)


def event_id(run_id: str, calendar_id: str, event: Mapping[str, Any], number: int) -> str:
    """Return a constant id of an event of a run, so that Google creates it only once.

    `number` counts equal events that were deleted since.

    It consists of letters a to v and digits.
    """
    whole = f"{run_id}\n{calendar_id}\n{json.dumps(event, sort_keys=True)}\n{number}".encode(
        "utf-8", "surrogatepass"
    )
    return f"vel{hashlib.sha256(whole).hexdigest()}"


def _updates(notify: bool) -> str:
    return "all" if notify else "none"


class Calendars:
    """The calendars of a session."""

    def __init__(self, session: GoogleSession) -> None:
        self._session = session

    def owner(self) -> str:
        """Return the address of the account."""
        place = _address("calendars", "primary")
        return str(self._session.ask("GET", place, access.READ_CALENDARS)["id"])

    def every(self) -> list[dict[str, Any]]:
        """Return id, name, time_zone, access and, for the own one, primary of each calendar.

        `access` is owner, writer, reader or freeBusyReader. At most `MAX_PAGES` pages are read.
        """
        found: list[dict[str, Any]] = []
        page = None
        for _ in range(MAX_PAGES):
            listed = self._session.ask(
                "GET",
                _address("users", "me", "calendarList"),
                access.READ_CALENDARS,
                query={"maxResults": PAGE, "pageToken": page},
            )
            found += [
                {
                    "id": str(item["id"]),
                    "name": str(item.get("summaryOverride") or item.get("summary", "")),
                    "time_zone": str(item.get("timeZone", "")),
                    "access": str(item.get("accessRole", "")),
                    **({"primary": True} if item.get("primary") else {}),
                }
                for item in listed.get("items") or ()
            ]
            page = listed.get("nextPageToken")
            if not page:
                break
        return found

    def events(self, calendar_id: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return events in their order, time_zone and next_page. `query` is the API's."""
        listed = self._session.ask(
            "GET",
            _address("calendars", calendar_id, "events"),
            access.READ_EVENTS,
            query={"singleEvents": "true", "orderBy": "startTime", **query},
        )
        found: dict[str, Any] = {
            "time_zone": str(listed.get("timeZone", "")),
            "events": [summary(item) for item in listed.get("items") or ()],
        }
        if listed.get("nextPageToken"):
            found["next_page"] = str(listed["nextPageToken"])
        return found

    def read(self, calendar_id: str, event: str) -> dict[str, Any]:
        return event_of(self._event(calendar_id, event))

    def busy(self, calendars: Sequence[str], start: str, end: str) -> dict[str, Any]:
        """Return `{"busy": …}` with each calendar's busy times from `start` to `end`.

        For a calendar whose times are unknown, it has the reason.
        """
        said = self._session.ask(
            "POST",
            _address("freeBusy"),
            access.READ_CALENDARS,
            body={"timeMin": start, "timeMax": end, "items": [{"id": one} for one in calendars]},
        )
        found: dict[str, Any] = {}
        for name, one in (said.get("calendars") or {}).items():
            problems = [str(item.get("reason", "")) for item in one.get("errors") or ()]
            found[str(name)] = {"error": ", ".join(problems)} if problems else one.get("busy", [])
        return {"busy": found}

    def create(
        self, run_id: str, calendar_id: str, event: Mapping[str, Any], notify: bool
    ) -> dict[str, Any]:
        """Create an event, or return the existing one if this run has created the same one.

        With `notify`, Google sends mails to the guests, here and in the methods below.
        """
        for number in range(_SAME):
            made = event_id(run_id, calendar_id, event, number)
            try:
                said = self._session.ask(
                    "POST",
                    _address("calendars", calendar_id, "events"),
                    access.CHANGE_EVENTS,
                    query={"sendUpdates": _updates(notify)},
                    body={**event, "id": made},
                    writes=True,
                )
            except GoogleFailed as failure:
                if failure.status != 409:
                    raise
                there = self._event(calendar_id, made)
                if there.get("status") == "cancelled":
                    continue  # it was deleted since, so create another one
                return {"created": False, "note": "It is there already.", **event_of(there)}
            return {"created": True, **event_of(said)}
        raise GoogleFailed(
            "An identical event was created and deleted too often. Change a detail of it.",
            "conflict",
        )

    def update(
        self, calendar_id: str, event: str, etag: str, changes: Mapping[str, Any], notify: bool
    ) -> dict[str, Any]:
        """Change the given fields, if the event still has this `etag`.

        Otherwise it raises `GoogleFailed` with the code `changed_meanwhile`.
        """
        said = self._session.ask(
            "PATCH",
            _address("calendars", calendar_id, "events", event),
            access.CHANGE_EVENTS,
            query={"sendUpdates": _updates(notify)},
            body=dict(changes),
            headers={"If-Match": etag},
            writes=True,
        )
        return event_of(said)

    def guests(self, calendar_id: str, event: str, wanted: Sequence[str]) -> list[dict[str, Any]]:
        """Return `wanted` in the API's format. Invited guests keep their answers."""
        there = {
            str(one.get("email", "")).lower(): one
            for one in self._event(calendar_id, event).get("attendees") or ()
        }
        return [there.get(address.lower(), {"email": address}) for address in wanted]

    def delete(self, calendar_id: str, event: str, etag: str, notify: bool) -> dict[str, Any]:
        """Delete the event, if it still has this `etag`. A deleted event is not an error."""
        try:
            self._session.ask(
                "DELETE",
                _address("calendars", calendar_id, "events", event),
                access.CHANGE_EVENTS,
                query={"sendUpdates": _updates(notify)},
                headers={"If-Match": etag},
                writes=True,
            )
        except GoogleFailed as failure:
            if failure.status != 410:
                raise
            return {"deleted": False, "note": "It was deleted before."}
        return {"deleted": True}

    def respond(self, calendar_id: str, event: str, answer: str, comment: str) -> dict[str, Any]:
        """Answer an invitation (accepted, declined or tentative). Google notifies the organiser."""
        there = self._event(calendar_id, event)
        own = next((one for one in there.get("attendees") or () if one.get("self")), None)
        if own is None:
            raise GoogleFailed("This calendar is not invited to the event.", "not_invited")
        said = {"email": own["email"], "responseStatus": answer}
        if comment:
            said["comment"] = comment
        # So the answers of the other guests do not change.
        changes = {"attendeesOmitted": True, "attendees": [said]}
        return self.update(calendar_id, event, str(there.get("etag", "*")), changes, True)

    def _event(self, calendar_id: str, event: str) -> dict[str, Any]:
        place = _address("calendars", calendar_id, "events", event)
        return self._session.ask("GET", place, access.READ_EVENTS)


MOST_ATTENDEES = 200


def summary(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event's fields for a list."""
    found = {
        "id": str(event.get("id", "")),
        "summary": _line(event.get("summary")),
        "start": _time(event.get("start")),
        "end": _time(event.get("end")),
    }
    if event.get("location"):
        found["location"] = _line(event["location"])
    if event.get("status") not in (None, "confirmed"):
        found["status"] = str(event["status"])
    if event.get("recurringEventId"):
        found["recurring_event_id"] = str(event["recurringEventId"])
    for guest in event.get("attendees") or ():
        if guest.get("self"):
            found["my_response"] = str(guest.get("responseStatus", ""))
    return found


def event_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return all of an event. `etag` identifies its present version."""
    found: dict[str, Any] = {**summary(event), "etag": str(event.get("etag", ""))}
    if event.get("description"):
        description = from_html(str(event["description"]).replace("\n", "<br>"))
        found["description"] = description.text
        if description.left_out:
            found["invisible_characters_left_out"] = description.left_out
    organizer = (event.get("organizer") or {}).get("email")
    if organizer:
        found["organizer"] = _line(organizer)
    guests = event.get("attendees") or ()
    if guests:
        found["attendees"] = [
            {
                "email": _line(guest.get("email")),
                "response": str(guest.get("responseStatus", "")),
                **({"optional": True} if guest.get("optional") else {}),
            }
            for guest in guests[:MOST_ATTENDEES]
        ]
    if event.get("recurrence"):
        found["recurrence"] = [_line(rule) for rule in event["recurrence"]]
    for name, key in (("hangoutLink", "video_link"), ("htmlLink", "link")):
        if event.get(name):
            found[key] = _line(event[name])
    return found


def _line(value: Any) -> str:
    return " ".join(plain(str(value or "")).text.split())[:2_000]


def _time(value: Any) -> str:
    """Return a date, or a moment with its offset and its zone, if known, in brackets."""
    given = value if isinstance(value, dict) else {}
    text = str(given.get("dateTime") or given.get("date") or "")
    return f"{text} [{given['timeZone']}]" if given.get("timeZone") else text
