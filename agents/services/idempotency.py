"""Carrying a request out once, however often it is sent: its rows and its answer commit together.

A row with the person's key is written first, in the transaction of the work. Who comes second
waits for it on the unique index (on SQLite for the transaction), and is then told the same.
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
"""A key is forgotten after so many days."""
MAX_KEY = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered: the status, the body as it goes out, and where the new thing is."""

    status: int
    body: Any
    location: str = ""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A person's request under a key. `digest` names all that was asked for."""

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
    """What was answered to this request; None for a new key.

    Raises `Conflict` when the key was used for something else.
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
    """The answer of `work`, and whether it is one of before. What `work` refuses uses no key.

    `work` runs inside the transaction that writes the key. Raises `Conflict` as `known_answer`.
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
    if known is None:  # the other one was rolled back, or has gone with its owner's old keys
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
