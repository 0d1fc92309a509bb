"""Files of threads that have no sandbox: rows instead of a directory."""

from __future__ import annotations

from django.db import models

from agents.models.thread import Thread


class StateFile(models.Model):
    """One file. `path` starts with a slash."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=1000)
    content = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["thread", "path"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "path"], name="state_file_path"),
        ]

    def __str__(self) -> str:
        return self.path
