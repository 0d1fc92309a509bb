"""Where a thread's conversation was made shorter for the model. What was said stays in its rows."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.run import Run
from agents.models.thread import Thread


class CompactionAuthor(models.TextChoices):
    """Who wrote the summary."""

    MODEL = "model", _("the model")
    JOURNAL = "journal", _("Vel, from the journal")
    CLIPPING = "clipping", _("nobody: long texts were cut")


class Compaction(models.Model):
    """How the model is told what was said before it. The thread's last row alone says it all.

    Places in the conversation are (a run's number, its turn). What was said before `from` is left
    out: `opening` stands for it. Texts before `clip` are cut to `clip_bytes`, later ones before
    `until` to `kept_bytes`; what came after `until` is told as it was said.
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
        blank=True, help_text=_("What the model reads in place of what is left out.")
    )
    files = models.JSONField(
        default=list, help_text=_("Files that were written in what is left out.")
    )
    message_files = models.JSONField(
        default=dict, help_text=_("Where messages lie that were cut, by the number of their run.")
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
