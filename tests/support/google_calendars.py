"""Calendar v3 of one person: the list of calendars, events, free and busy times."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from tests.support.google_wire import Refused, allow, fields, known

READ = ("calendar.readonly", "calendar")
EVENTS = ("calendar.events", "calendar")
FIELDS = [
    "id",
    "summary",
    "description",
    "location",
    "start",
    "end",
    "attendees",
    "attendeesOmitted",
    "recurrence",
]
NOTIFY = ("all", "externalOnly", "none")


class CalendarApi:
    def __init__(self, address: str) -> None:
        self.address = address
        self.lists = [
            {
                "kind": "calendar#calendarListEntry",
                "id": address,
                "summary": address,
                "timeZone": "Europe/Berlin",
                "accessRole": "owner",
                "primary": True,
            },
            {
                "kind": "calendar#calendarListEntry",
                "id": "team@group.calendar.google.com",
                "summary": "Team",
                "timeZone": "UTC",
                "accessRole": "reader",
            },
        ]
        self.events: dict[str, dict[str, Any]] = {}
        self.notified: list[tuple[str, str]] = []

    def invite(self, key: str, **given: Any) -> None:
        self.events[key] = {"id": key, "status": "confirmed", "etag": '"1"', **given}

    def answer(
        self,
        method: str,
        parts: list[str],
        query: dict[str, list[str]],
        body: Any,
        scopes: set[str],
        if_match: str | None,
    ) -> tuple[int, Any]:
        match method, parts:
            case "GET", ["users", "me", "calendarList"]:
                allow(scopes, *READ)
                start = int(known(query, "maxResults", "pageToken").get("pageToken", 0))
                more = {"nextPageToken": "1"} if start == 0 else {}
                return 200, {"items": self.lists[start : start + 1], **more}
            case "GET", ["calendars", name]:
                allow(scopes, *READ)
                return 200, {"id": self._own(name), "timeZone": "Europe/Berlin"}
            case "POST", ["freeBusy"]:
                allow(scopes, *READ)
                return 200, self._busy(fields(body, "timeMin", "timeMax", "timeZone", "items"))
            case "GET", ["calendars", name, "events"]:
                allow(scopes, *READ, *EVENTS)
                self._own(name)
                return 200, self._list(query)
            case "GET", ["calendars", name, "events", key]:
                allow(scopes, *READ, *EVENTS)
                self._own(name)
                return 200, self._found(key)
            case "POST", ["calendars", name, "events"]:
                allow(scopes, *EVENTS)
                self._may_write(name)
                return 200, self._insert(fields(body, *FIELDS), self._notify(query))
            case "PATCH", ["calendars", name, "events", key]:
                allow(scopes, *EVENTS)
                self._may_write(name)
                return 200, self._patch(key, fields(body, *FIELDS), self._notify(query), if_match)
            case "DELETE", ["calendars", name, "events", key]:
                allow(scopes, *EVENTS)
                self._may_write(name)
                return 204, self._delete(key, self._notify(query), if_match)
        raise Refused.of(404, "Not Found", "notFound")

    def _own(self, name: str) -> str:
        name = self.address if name == "primary" else name
        if name not in {one["id"] for one in self.lists}:
            raise Refused.of(404, "Not Found", "notFound")
        return name

    def _may_write(self, name: str) -> None:
        if self._own(name) != self.address:
            raise Refused.of(
                403, "You need to have writer access to this calendar.", "requiredAccessLevel"
            )

    def _notify(self, query: dict[str, list[str]]) -> str:
        wanted = known(query, "sendUpdates").get("sendUpdates", "none")
        if wanted not in NOTIFY:
            raise Refused.of(400, "Invalid value for: sendUpdates", "invalidParameter")
        return wanted

    def _found(self, key: str) -> dict[str, Any]:
        if key not in self.events:
            raise Refused.of(404, "Not Found", "notFound")
        return self.events[key]

    def _insert(self, given: dict[str, Any], notify: str) -> Any:
        key = given.get("id", "")
        if not re.fullmatch("[a-v0-9]{5,1024}", key):
            raise Refused.of(400, "Invalid resource id value.", "invalid")
        _check_times(given.get("start"), given.get("end"))
        if key in self.events:
            raise Refused.of(409, "The requested identifier already exists.", "duplicate")
        guests = [{"responseStatus": "needsAction", **one} for one in given.get("attendees", ())]
        more = {"attendees": guests} if guests else {}
        link = f"https://www.google.com/calendar/event?eid={key[:8]}"
        self.invite(key, **{**given, **more}, htmlLink=link, organizer={"email": self.address})
        self.notified.append((key, notify))
        return self.events[key]

    def _patch(self, key: str, given: dict[str, Any], notify: str, if_match: str | None) -> Any:
        found = self._found(key)
        if if_match not in (None, "*", found["etag"]):
            raise Refused.of(412, "Precondition Failed", "conditionNotMet")
        if "start" in given:
            _check_times(given["start"], given.get("end"))
        if given.pop("attendeesOmitted", False):
            said = {one["email"]: one for one in given["attendees"]}
            given["attendees"] = [
                {**one, **said.get(one["email"], {})} for one in found["attendees"]
            ]
        found |= given
        found["etag"] = f'"{int(found["etag"].strip(chr(34))) + 1}"'
        self.notified.append((key, notify))
        return found

    def _delete(self, key: str, notify: str, if_match: str | None) -> None:
        found = self._found(key)
        if found["status"] == "cancelled":
            raise Refused.of(410, "Resource has been deleted", "deleted")
        if if_match not in (None, "*", found["etag"]):
            raise Refused.of(412, "Precondition Failed", "conditionNotMet")
        found["status"] = "cancelled"
        self.notified.append((key, notify))

    def _list(self, query: dict[str, list[str]]) -> Any:
        names = ("timeMin", "timeMax", "q", "timeZone", "maxResults", "pageToken")
        given = known(query, *names, "singleEvents", "orderBy")
        least, most = given.get("timeMin"), given.get("timeMax")
        for moment in (least, most):
            if moment is not None and datetime.fromisoformat(moment).tzinfo is None:
                raise Refused.of(400, "Bad Request", "badRequest")
        found = sorted(
            (
                one
                for one in self.events.values()
                if one["status"] != "cancelled"
                and (least is None or _moment(one["end"]) > datetime.fromisoformat(least))
                and (most is None or _moment(one["start"]) < datetime.fromisoformat(most))
                and given.get("q", "").lower() in str(one.get("summary", "")).lower()
            ),
            key=lambda one: _moment(one["start"]),
        )
        start = int(given.get("pageToken", 0))
        end = start + int(given.get("maxResults", 250))
        more = {"nextPageToken": str(end)} if end < len(found) else {}
        zone = given.get("timeZone", "Europe/Berlin")
        return {"timeZone": zone, "items": found[start:end], **more}

    def _busy(self, given: dict[str, Any]) -> Any:
        for name in ("timeMin", "timeMax", "items"):
            if not given.get(name):
                raise Refused.of(400, f"Missing {name}", "required")
        own = [
            {"start": one["start"]["dateTime"], "end": one["end"]["dateTime"]}
            for one in self.events.values()
            if one["status"] != "cancelled"
        ]
        unknown = {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []}
        mine = ("primary", self.address)
        found = {
            one["id"]: {"busy": own} if one["id"] in mine else unknown for one in given["items"]
        }
        return {"kind": "calendar#freeBusy", "calendars": found}


def _moment(given: dict[str, str]) -> datetime:
    text = given.get("dateTime") or f"{given['date']}T00:00:00+00:00"
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else datetime.fromisoformat(f"{text}+00:00")


def _check_times(start: Any, end: Any) -> None:
    for given in (start, end):
        if not isinstance(given, dict) or len({"date", "dateTime"} & set(given)) != 1:
            raise Refused.of(400, "Missing start or end time.", "required")
        if "dateTime" in given and not (
            "timeZone" in given or datetime.fromisoformat(given["dateTime"]).tzinfo
        ):
            raise Refused.of(400, "Missing time zone definition for start time.", "required")
    if set(start) & {"date"} != set(end) & {"date"} or _moment(start) >= _moment(end):
        raise Refused.of(400, "The specified time range is empty.", "timeRangeEmpty")
