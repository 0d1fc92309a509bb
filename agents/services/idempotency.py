"""Idempotency keys: a request runs once, and its rows and its response commit together.

A row with the client's key is written first, in the transaction of the work. A second request waits
for it on the unique index (on SQLite for the transaction), and then gets the same response.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.events.append import dump
from agents.models import IdempotencyKey
from agents.services.errors import Conflict, InvalidRequest

KEEP_DAYS = 30
"""Keys are deleted after this number of days."""
MAX_KEY = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: the status, the body as it is sent, and the location of the new object."""

    status: int
    body: Any
    location: str = ""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A request under a person's key. `digest` covers all of the request.

    Raises `InvalidRequest` for an invalid key.
    """

    owner: AbstractBaseUser
    key: str
    digest: str

    def __post_init__(self) -> None:
        if not 0 < len(self.key) <= MAX_KEY or not (self.key.isascii() and self.key.isprintable()):
            raise InvalidRequest(
                f"The idempotency key must have 1 to {MAX_KEY} printable ASCII characters, "
                "for example a UUID."
            )


class _Taken(Exception):
    """Another request with this key was faster."""


def known_answer(request: Keyed) -> Answer | None:
    """Return the stored response to this request; None for a new key.

    Raises `Conflict` if the key was used for another request.
    """
    row = IdempotencyKey.objects.filter(owner_id=request.owner.pk, key=request.key).first()
    if row is None:
        return None
    if row.body_hash != request.digest or row.status is None:
        raise Conflict(
            "This idempotency key was used with another body: use a new key.",
            code="idempotency_mismatch",
        )
    return Answer(row.status, json.loads(row.answer), row.location)


def carry_out_once(request: Keyed, work: Callable[[], Answer]) -> tuple[Answer, bool]:
    """Return the response of `work`, and whether it is a stored one.

    `work` runs inside the transaction that writes the key. If `work` raises an exception, the key
    is not stored and can be used again. Raises `Conflict` as `known_answer`, and if another request
    uses the key at this moment.
    """
    known = known_answer(request)
    if known is not None:
        return known, True
    try:
        with transaction.atomic():
            row = _claim(request)
            answer = work()
            row.status, row.location = answer.status, answer.location
            row.answer = dump(answer.body)
            row.save(update_fields=["status", "location", "answer"])
            return answer, False
    except _Taken:
        known = known_answer(request)
    if known is None:  # the other one was rolled back, or was deleted with its owner's old keys
        raise Conflict("This key is being used at this moment: try again.", code="key_in_use")
    return known, True


def _claim(request: Keyed) -> IdempotencyKey:
    mine = IdempotencyKey.objects.filter(owner_id=request.owner.pk)
    mine.filter(created_at__lt=timezone.now() - timedelta(days=KEEP_DAYS)).delete()
    try:
        with transaction.atomic():
            return IdempotencyKey.objects.create(
                owner_id=request.owner.pk, key=request.key, body_hash=request.digest
            )
    except IntegrityError:
        raise _Taken from None
