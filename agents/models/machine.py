"""The machines that drive runs, in an installation with several."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

NAME_LENGTH = 100


class Machine(models.Model):
    """A machine and its name. An installation on one machine has no rows.

    Times are seconds since 1970 on the database's clock. A host that was declared dead returns with
    a new incarnation. Processes of the old incarnation can claim no run, and tie no thread to the
    machine.
    """

    audit_kind = "workerhost"

    name = models.CharField(primary_key=True, max_length=NAME_LENGTH)
    identity = models.CharField(
        max_length=64,
        help_text=_(
            "Identifies its data directory, so that two machines cannot use the same name."
        ),
    )
    incarnation = models.PositiveIntegerField(default=1)
    shares_workspaces = models.BooleanField(default=False)
    is_draining = models.BooleanField(
        default=False, help_text=_("It starts no runs and moves its threads to other machines.")
    )
    joined_at = models.FloatField()
    seen_at = models.FloatField()
    dead_at = models.FloatField(
        null=True, blank=True, help_text=_("The time when it was declared dead.")
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
