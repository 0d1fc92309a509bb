"""Events of the Google Calendar API in a format for models."""

from __future__ import annotations

from typing import Any

from agents.features.google_workspace.client.plain_text import from_html, plain

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
