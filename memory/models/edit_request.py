"""What an agent wants to change in its memory, as it was shown to a person."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from memory.models.file import Operation
from memory.paths import MAX_PATH_CHARACTERS


class MemoryEditRequest(models.Model):
    """One proposed change. Its status is that of the approval request that points to it.

    `proposed_content` is the whole file as it would be, for `append` too; null for `delete`.
    `base_revision` is the number of the revision that the proposal builds on; 0 for a new file.
    """

    agent = models.ForeignKey(
        "agents.Agent", on_delete=models.CASCADE, related_name="memory_edit_requests"
    )
    run = models.ForeignKey(
        "agents.Run", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    path = models.CharField(max_length=MAX_PATH_CHARACTERS)
    operation = models.CharField(max_length=10, choices=Operation.choices)
    previous_content = models.TextField(null=True, blank=True)
    base_revision = models.PositiveIntegerField(default=0)
    proposed_content = models.TextField(null=True, blank=True)
    asked = models.JSONField(
        default=dict, help_text=_("content, old_text and replace_all, as the agent gave them.")
    )
    reason = models.TextField(blank=True)
    provenance = models.JSONField(
        default=dict, help_text=_("step, and sources: what the run had read of others' text.")
    )
    warnings = models.JSONField(default=list, help_text=_("Sentences, as on the memory's size."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.operation} {self.path}"
