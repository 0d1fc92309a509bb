"""What the owner of a conversation marked."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Thread


class ConversationMark(models.Model):
    """The marks of a thread. A thread without a row is neither pinned nor archived."""

    thread = models.OneToOneField(
        Thread, on_delete=models.CASCADE, primary_key=True, related_name="mark"
    )
    pinned_at = models.DateTimeField(
        null=True, blank=True, help_text=_("When its owner pinned it to the top of the list.")
    )
    archived_at = models.DateTimeField(
        null=True, blank=True, help_text=_("When its owner removed it from the list.")
    )

    def __str__(self) -> str:
        return f"marks of thread {self.thread_id}"
