"""Schedules, and the result of each due time."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.signals import pre_delete
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models import Run, Trigger, forget_trigger


class Overlap(models.TextChoices):
    SKIP = "skip", _("skip this time")
    QUEUE = "queue", _("wait for its end")


class Schedule(Trigger):
    """A message to an agent, sent by the clock in the name of its owner.

    It has either `cron` (five fields, by the wall clock of `time_zone`) or `interval_seconds`.
    `due_at` is the next time; `next_at` is when a worker checks it, which is later than `due_at`
    while an earlier run is unfinished. Both are null while the schedule is paused, and after its
    end.
    """

    message = models.TextField(
        help_text=_(
            "{{ date }}, {{ time }}, {{ weekday }} and {{ schedule }} are replaced by their values."
        )
    )
    cron = models.CharField(
        max_length=100,
        blank=True,
        help_text=_("Minute, hour, day of month, month, weekday: 30 8 * * mon-fri."),
    )
    interval_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("The seconds between two times, instead of cron.")
    )
    time_zone = models.CharField(
        max_length=64,
        default="UTC",
        help_text=_("The time zone of cron, for example Europe/Vienna."),
    )
    overlap = models.CharField(
        max_length=10,
        choices=Overlap.choices,
        default=Overlap.SKIP,
        help_text=_("What happens if the previous run has not ended."),
    )
    ends_at = models.DateTimeField(null=True, blank=True, help_text=_("The end of the schedule."))
    due_at = models.DateTimeField(null=True, editable=False)
    next_at = models.DateTimeField(null=True, editable=False)

    class Meta(Trigger.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(cron="", interval_seconds__isnull=False)
                | (~Q(cron="") & Q(interval_seconds__isnull=True)),
                name="schedule_cron_or_interval",
                violation_error_message="Give either a cron expression or an interval.",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_at"], condition=Q(next_at__isnull=False), name="schedule_next_at"
            ),
        ]

    @property
    def when(self) -> str:
        """Return its times as text, as "30 8 * * mon-fri Europe/Vienna" or "every 1 h 30 min"."""
        if self.interval_seconds is None:
            return f"{self.cron} {self.time_zone}"
        minutes, seconds = divmod(self.interval_seconds, 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
        interval = " ".join(f"{count} {unit}" for count, unit in parts if count)
        return gettext("every %(interval)s") % {"interval": interval}


pre_delete.connect(forget_trigger, sender=Schedule)


class FiringOutcome(models.TextChoices):
    STARTED = "started", _("started")
    SKIPPED = "skipped", _("skipped")
    REFUSED = "refused", _("not started")
    FAILED = "failed", _("failed")


class ScheduleFiring(models.Model):
    """A due time and its result. The unique pair prevents two workers from both starting it."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="firings")
    due_at = models.DateTimeField()
    outcome = models.CharField(max_length=10, choices=FiringOutcome.choices)
    reason = models.CharField(max_length=50, blank=True)
    detail = models.TextField(blank=True)
    missed = models.PositiveIntegerField(
        default=0, help_text=_("Missed times before this one, for example after downtime.")
    )
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["schedule", "due_at"], name="firing_once"),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.due_at:%Y-%m-%d %H:%M:%S}: {self.outcome}"
