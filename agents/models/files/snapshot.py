"""The history of a thread's files: a row for each change by a call, by a restore, or in between."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.run import Run
from agents.models.thread import Thread


class SnapshotCause(models.TextChoices):
    CALL = "call", _("a tool call")
    OUTSIDE = "outside", _("something between the calls")
    RESTORE = "restore", _("a restore")


class WorkspaceSnapshot(models.Model):
    """A step from one state of the workspace to the next.

    `base` and `manifest` name the states before and after it in the thread's snapshot store, which
    contains the files.
    """

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="snapshots")
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, null=True, blank=True, related_name="snapshots"
    )
    turn = models.PositiveIntegerField(null=True, blank=True)
    position = models.PositiveSmallIntegerField(null=True, blank=True)
    cause = models.CharField(max_length=10, choices=SnapshotCause.choices)
    base = models.CharField(max_length=64, blank=True)
    manifest = models.CharField(max_length=64)
    added = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    deleted = models.PositiveIntegerField(default=0)
    stored_bytes = models.PositiveBigIntegerField(
        default=0, help_text=_("The disk space that it uses, in bytes.")
    )
    is_complete = models.BooleanField(
        default=True, help_text=_("False: files above a limit were not kept.")
    )
    is_stored = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_("Whether its state is in the storage that all machines share."),
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("The user who restored it."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["thread", "pk"]
        indexes = [models.Index(fields=["run", "turn"], name="snapshot_of_turn")]
        permissions = [
            ("restore_workspace", _("Can restore the files of the threads that they may see"))
        ]

    def __str__(self) -> str:
        return f"snapshot {self.pk} of {self.thread_id}"
