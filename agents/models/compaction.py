"""Compactions shorten a thread's conversation for the model. The messages stay in their rows."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.run import Run
from agents.models.thread import Thread


class CompactionAuthor(models.TextChoices):
    """The author of the summary."""

    MODEL = "model", _("the model")
    JOURNAL = "journal", _("Vel, from the journal")
    CLIPPING = "clipping", _("no summary: long texts were cut")


class Compaction(models.Model):
    """How the model sees the conversation before this point. Only the thread's last row is used.

    Positions in the conversation are (number of the run, turn). Messages before (`from_run`,
    `from_turn`) are left out: `opening` replaces them. Texts before (`clip_run`, `clip_turn`) are
    cut to `clip_bytes`, later ones before (`until_run`, `until_turn`) to `kept_bytes`. Later
    messages are sent in full.
    """

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="compactions")
    number = models.PositiveIntegerField()
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="compactions")
    from_run = models.PositiveIntegerField(default=0)
    from_turn = models.PositiveIntegerField(default=0)
    clip_run = models.PositiveIntegerField(default=0)
    clip_turn = models.PositiveIntegerField(default=0)
    clip_bytes = models.PositiveIntegerField(default=0)
    until_run = models.PositiveIntegerField()
    until_turn = models.PositiveIntegerField()
    kept_bytes = models.PositiveIntegerField()
    by = models.CharField(max_length=10, choices=CompactionAuthor.choices)
    summary = models.TextField(blank=True)
    opening = models.TextField(
        blank=True, help_text=_("The text that replaces the omitted messages for the model.")
    )
    files = models.JSONField(
        default=list, help_text=_("Files that were written in the omitted messages.")
    )
    message_files = models.JSONField(
        default=dict,
        help_text=_("Files with the full text of cut messages, by the number of their run."),
    )
    tokens_before = models.PositiveIntegerField()
    tokens_after = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["thread", "number"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "number"], name="compaction_number"),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id} compaction {self.number}"
