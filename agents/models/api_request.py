"""Requests to the API: how many there are, and the requests that must not run twice."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from agents.models.run import Run


class IdempotencyKey(models.Model):
    """A key that a client chose for one request. `answer` is the response's body as JSON text.

    A message from a page or a socket has a `run` and no answer.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="+")
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(blank=True)
    location = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="idempotency_key_per_owner"),
        ]

    def __str__(self) -> str:
        return self.key


class RequestCount(models.Model):
    """The number of requests of a person, a token or an address in its last active minute.

    `minute` counts since 1970. `used` includes refused requests, so it can exceed the limit.
    """

    subject = models.CharField(primary_key=True, max_length=80)
    minute = models.BigIntegerField(db_index=True)
    used = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.subject
