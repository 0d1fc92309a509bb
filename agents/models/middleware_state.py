"""The stored state of a Python program's middleware."""

from __future__ import annotations

from django.db import models

from agents.models.json_text import JSONTextField
from agents.models.thread import Thread


class MiddlewareState(models.Model):
    """The state of one middleware in one session: the last value of its `get_state`."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="middleware_states")
    name = models.CharField(max_length=100)
    state = JSONTextField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["thread", "name"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "name"], name="middleware_state_name"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.thread_id}"
