"""How many requests were let in, over all web processes."""

from __future__ import annotations

from django.db import models


class RequestCount(models.Model):
    """One row for each person, token or address, of the last minute that it was seen in.

    `minute` counts since 1970. `used` may be more than the limit: it was asked for in vain.
    """

    subject = models.CharField(primary_key=True, max_length=80)
    minute = models.BigIntegerField(db_index=True)
    used = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.subject
