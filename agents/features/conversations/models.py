"""Marks and titles of conversations."""

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


class ConversationTitle(models.Model):
    """The title that a model writes for a thread, once.

    A thread whose owner gave it a title before has a row without `run_number` and `due_at`.
    """

    thread = models.OneToOneField(
        Thread, on_delete=models.CASCADE, primary_key=True, related_name="written_title"
    )
    run_number = models.PositiveIntegerField(
        null=True,
        help_text=_("The number of the run whose message and answer the title describes."),
    )
    due_at = models.DateTimeField(
        null=True,
        db_index=True,
        help_text=_("When a worker may write it. Null: it is finished."),
    )
    tries = models.PositiveSmallIntegerField(
        default=0, help_text=_("How often a worker has taken it. It is the worker's fencing token.")
    )

    def __str__(self) -> str:
        return f"title of thread {self.thread_id}"
