"""What hosts still have to remove from their disks."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH
from agents.models.machine import NAME_LENGTH


class ErasedFiles(models.Model):
    """An erased thread of which files may lie on a host. The row goes when they are gone.

    Neither refers to a row: the thread's goes first, and a host may be locked by whoever erases.
    """

    host = models.CharField(max_length=NAME_LENGTH)
    thread = models.CharField(max_length=ID_LENGTH, help_text=_("The id that it had."))

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["host", "thread"], name="once_for_each_host")
        ]
        verbose_name = _("erased files")
        verbose_name_plural = _("erased files")

    def __str__(self) -> str:
        return f"{self.thread} on {self.host}"
