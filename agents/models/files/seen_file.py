"""The last content of a file that an agent has seen. The agent cannot overwrite other content."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH
from agents.models.thread import Thread


class SeenFile(models.Model):
    """A path that an agent of a thread has read or written. Path and content are SHA-256 in hex.

    `reader` is empty for the thread's agent: its runs share one conversation. For a subagent it is
    the id of its run.
    """

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="seen_files")
    reader = models.CharField(max_length=ID_LENGTH, blank=True)
    path_hash = models.CharField(max_length=64)
    content_hash = models.CharField(
        max_length=64, blank=True, help_text=_("Empty: the file did not exist.")
    )
    seen_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["thread", "reader", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "reader", "path_hash"], name="seen_file_path"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.path_hash[:12]} of {self.thread_id}"
