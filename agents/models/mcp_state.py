"""Where several hosts find what a thread's MCP programs keep."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.thread import Thread


class McpState(models.Model):
    """The last stored state of the directories of all MCP programs of one thread."""

    thread = models.OneToOneField(
        Thread, on_delete=models.CASCADE, primary_key=True, related_name="mcp_state"
    )
    manifest = models.CharField(
        max_length=64, blank=True, help_text=_("Empty: it is more than the storage takes.")
    )
    stored_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["thread"]
        verbose_name = _("state of MCP programs")
        verbose_name_plural = _("states of MCP programs")

    def __str__(self) -> str:
        return f"{self.manifest[:12] or 'not stored'} of {self.thread_id}"
