"""Permissions of a credential: Google's scopes, and the scopes that each task needs."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

_AUTH = "https://www.googleapis.com/auth/"

GMAIL_READ = f"{_AUTH}gmail.readonly"
GMAIL_SEND = f"{_AUTH}gmail.send"
GMAIL_COMPOSE = f"{_AUTH}gmail.compose"
GMAIL_MODIFY = f"{_AUTH}gmail.modify"
GMAIL_ALL = "https://mail.google.com/"
CALENDAR_READ = f"{_AUTH}calendar.readonly"
CALENDAR_EVENTS = f"{_AUTH}calendar.events"
CALENDAR_ALL = f"{_AUTH}calendar"


@dataclass(frozen=True, slots=True)
class Access:
    """A permission that a person can grant; `scope` is the narrowest scope for it."""

    name: str
    label: str | Promise
    scope: str


OFFERED = (
    Access("gmail.readonly", _("read mail"), GMAIL_READ),
    Access("gmail.send", _("send mail"), GMAIL_SEND),
    Access("gmail.compose", _("write drafts, and send mail"), GMAIL_COMPOSE),
    Access("gmail.modify", _("change labels and trash, and all of the above"), GMAIL_MODIFY),
    Access("calendar.readonly", _("read calendars"), CALENDAR_READ),
    Access("calendar.events", _("change events"), CALENDAR_EVENTS),
)
SCOPES = {access.name: access.scope for access in OFFERED}
KNOWN = frozenset({*SCOPES.values(), GMAIL_ALL, CALENDAR_ALL})

# The narrowest scope comes first: error messages name it.
READ_MAIL = (GMAIL_READ, GMAIL_MODIFY, GMAIL_ALL)
SEND_MAIL = (GMAIL_SEND, GMAIL_COMPOSE, GMAIL_MODIFY, GMAIL_ALL)
WRITE_DRAFTS = (GMAIL_COMPOSE, GMAIL_MODIFY, GMAIL_ALL)
CHANGE_MAIL = (GMAIL_MODIFY, GMAIL_ALL)
READ_LABELS = (GMAIL_READ, GMAIL_MODIFY, GMAIL_ALL)
PROFILE = (GMAIL_READ, GMAIL_COMPOSE, GMAIL_MODIFY, GMAIL_ALL)
READ_CALENDARS = (CALENDAR_READ, CALENDAR_ALL)
READ_EVENTS = (CALENDAR_READ, CALENDAR_EVENTS, CALENDAR_ALL)
CHANGE_EVENTS = (CALENDAR_EVENTS, CALENDAR_ALL)


def short(scopes: frozenset[str]) -> str:
    """Return the scopes' short names: gmail.readonly, calendar.events."""
    return ", ".join(sorted(scope.removeprefix(_AUTH) for scope in scopes & KNOWN))
