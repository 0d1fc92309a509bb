"""The audit log: one entry in the transaction of each change or decision of a person.

Services call `record`. The door sets the origin of a request once with `acting`, so services do not
need to pass it on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.db import models, transaction

from agents.models import AuditEntry, Door
from agents.secret_text import HIDDEN, SecretText
from agents.selectors.visible import Person

LONGEST_TEXT = 4_000
"""The limit of one value, in characters. Of a longer one the start, the length and the SHA-256 are
kept."""

_NOTHING: tuple[object, ...] = (None, "", [], {})

Change = tuple[object, object]
"""A field's value before and after."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a change.

    `credential` is not secret: the first characters of a token, or an account of this machine.
    `name` identifies the actor if it is not a user of Vel.
    """

    door: str = Door.CODE
    address: str = ""
    person: Person | None = None
    credential: str = ""
    name: str = ""


FindOrigin = Callable[[], Origin]
"""Called when an entry is written: the user may be known only after the view has started."""

_origin: ContextVar[FindOrigin] = ContextVar("origin", default=Origin)


@contextmanager
def acting(find_origin: FindOrigin) -> Iterator[None]:
    """Set the origin of entries until the end of the block."""
    token = _origin.set(find_origin)
    try:
        yield
    finally:
        _origin.reset(token)


def present_origin() -> FindOrigin:
    """Return the present origin of `acting`, for tasks without their creator's context."""
    return _origin.get()


def record(
    action: str,
    target: models.Model | str,
    *,
    name: str = "",
    by: Person | int | str | UUID | None = None,
    changes: Mapping[str, Change] | None = None,
    note: str = "",
) -> AuditEntry:
    """Record that `action` was done to `target`. `name` is the target's name for people.

    If there is no single row, `target` is only the kind of the entry, for example `"secret"`.

    `by` is the user or the user's key; the default is the user of the request. Only fields of
    `changes` that differ are kept. Call this in the transaction of the change itself: both are
    stored, or neither. Raises `ImproperlyConfigured` outside of a transaction.
    """
    if not transaction.get_connection().in_atomic_block:
        raise ImproperlyConfigured("An audit entry belongs into the transaction of its change.")
    origin = _origin.get()()
    actor_id, actor = _actor(by, origin)
    if isinstance(target, str):
        kind, target_id = target, ""
    else:
        kind = getattr(target, "audit_kind", target._meta.model_name or "")
        target_id = str(target.pk or "")
    return AuditEntry.objects.create(
        actor=actor[:200],
        actor_id=actor_id,
        door=origin.door,
        address=origin.address[:100],
        credential=origin.credential[:100],
        action=action,
        kind=kind,
        target_id=target_id,
        target=(name or str(target))[:300],
        changes={
            field: [_plain(before), _plain(after)]
            for field, (before, after) in (changes or {}).items()
            if before != after
        },
        note=_short(note),
    )


def fields_of(row: models.Model, *names: str) -> dict[str, object]:
    """Return the values of these fields of `row`, for `changes_between`."""
    return {name: getattr(row, name) for name in names}


def changes_between(
    before: Mapping[str, object] | None, after: Mapping[str, object]
) -> dict[str, Change]:
    """Return the differences, as `record` takes them. `before` is None for a new row.

    Empty fields of a new row are left out.
    """
    if before is None:
        return {name: (None, value) for name, value in after.items() if value not in _NOTHING}
    names = [*after, *(name for name in before if name not in after)]
    return {
        name: (before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    }


def _actor(by: Person | int | str | UUID | None, origin: Origin) -> tuple[str, str]:
    """Return (key, name)."""
    person = origin.person
    if person is not None and (isinstance(person, AnonymousUser) or not person.is_authenticated):
        person = None
    if isinstance(by, AbstractBaseUser | AnonymousUser):
        person = by
    elif by is not None and (person is None or person.pk != by):
        person = get_user_model().objects.filter(pk=str(by)).first()
    if person is None or person.pk is None:
        return "", origin.name
    return str(person.pk), person.get_username()


def _plain(value: object) -> Any:
    """Return `value` as JSON can store it, with long texts cut and secrets hidden."""
    if isinstance(value, SecretText):
        return HIDDEN if value else ""
    if isinstance(value, str):
        return _short(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | list | tuple):
        text = json.dumps(value, ensure_ascii=False, default=_stand_in)
        return json.loads(text) if len(text) <= LONGEST_TEXT else _short(text)
    return _short(str(value))


def _stand_in(value: object) -> str:
    return HIDDEN if isinstance(value, SecretText) else str(value)


def _short(text: str) -> str:
    text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    if len(text) <= LONGEST_TEXT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:LONGEST_TEXT]}… ({len(text):,} characters, sha256 {digest})"
