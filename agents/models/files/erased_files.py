"""Files that hosts must still remove from their disks."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH
from agents.models.machine import NAME_LENGTH


class ErasedFiles(models.Model):
    """An erased thread that may still have files on a host. Deleted when these are removed.

    There are no foreign keys: the thread's row is deleted first, and a process that erases may hold
    a lock on the host's row.
    """

    host = models.CharField(max_length=NAME_LENGTH)
    thread = models.CharField(max_length=ID_LENGTH, help_text=_("The id of the erased thread."))

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["host", "thread"], name="once_for_each_host")
        ]
        verbose_name = _("erased files")
        verbose_name_plural = _("erased files")

    def __str__(self) -> str:
        return f"{self.thread} on {self.host}"
