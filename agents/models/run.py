"""Runs, from a request to its answer, and their few numbers that change often."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.kernel.features import collect
from agents.models.agent import AgentVersion
from agents.models.json_text import JSONTextField
from agents.models.thread import Thread
from agents.states import ACTIVE_RUNS, ENDED_RUNS, RunStatus, WaitReason

NEVER_STARTED = Q(status=RunStatus.CANCELLED, message_refused=True)
"""Runs that never started: a person removed their message, or it joined the run before them."""
POOL = "pool"
"""`Run.executor` of runs that any worker can claim."""
RESTORED = "restored"
"""`Run.executor` of runs from a backup that a person must resume. Processes have other names."""


def wait_reasons() -> list[tuple[str, Any]]:
    """Return the reasons of parked runs with their labels: those of Vel and of features."""
    kinds = collect("run_requests", "RUN_REQUESTS")
    return [*WaitReason.choices, *((kind.name, kind.label) for _, kind in kinds)]


class KeptRuns(models.Manager["Run"]):
    """Runs, without those of threads that are being erased. All doors use this manager."""

    def get_queryset(self) -> models.QuerySet[Run]:
        return super().get_queryset().filter(is_erased=False)


class Run(models.Model):
    """A person's message and all the work of the agent until its answer."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField(help_text=_("Its place in the thread, from 1."))
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    parent_call = models.ForeignKey(
        "agents.ToolCall",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="children",
        help_text=_("The call that delegated to it."),
    )
    parent_index = models.PositiveSmallIntegerField(
        default=0, help_text=_("Its position in the tasks of that call.")
    )
    depth = models.PositiveSmallIntegerField(
        default=0, help_text=_("The number of ancestors. 0: not a subagent.")
    )
    subagent = models.CharField(
        max_length=100, blank=True, help_text=_("The name of the subagent.")
    )
    subagent_spec = models.JSONField(
        null=True,
        blank=True,
        help_text=_(
            "The definition that it uses instead of that of its agent version: a subagent's, or "
            "the agent's with another model."
        ),
    )
    is_awaited = models.BooleanField(
        default=False, help_text=_("Whether its parked parent run continues when it has ended.")
    )
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.PROTECT, related_name="runs")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    status = models.CharField(
        max_length=20, choices=RunStatus.choices, default=RunStatus.QUEUED, db_index=True
    )
    wait_reason = models.CharField(
        max_length=20, choices=wait_reasons, default=WaitReason.NONE, blank=True
    )
    wake_at = models.FloatField(
        null=True,
        blank=True,
        help_text=_(
            "When a parked run continues automatically, in seconds since 1970 on the database's "
            "clock."
        ),
    )
    executor = models.CharField(
        max_length=100,
        default=POOL,
        help_text=_("`pool`, or the only process that can drive it."),
    )
    source = models.CharField(
        max_length=20,
        default="api",
        help_text=_("The interface that started it, for example api or cli."),
    )
    trigger = models.CharField(
        max_length=ID_LENGTH,
        null=True,
        blank=True,
        help_text=_("The id of the trigger that started it or its root run."),
    )
    has_begun = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("Whether a driver has stored the values that stay fixed until its end."),
    )
    opening_note = models.TextField(
        blank=True, help_text=_("A note that the model receives with the person's message.")
    )
    has_uploads = models.BooleanField(
        default=False, help_text=_("Whether there are uploads that the model has not seen yet.")
    )
    attachments = models.TextField(
        blank=True,
        help_text=_("Content blocks of attached files as JSON, with pictures as ids."),
    )
    output_schema = JSONTextField(
        null=True, blank=True, help_text=_("The JSON Schema requested for its final answer.")
    )
    structured_output = JSONTextField(
        null=True,
        blank=True,
        help_text=_("The value of its final answer, valid for the requested schema."),
    )
    resumed_from = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="resumed_by",
        help_text=_("The ended run that it continues."),
    )
    is_copy = models.BooleanField(
        default=False,
        editable=False,
        help_text=_("Whether a fork copied it from another thread. It was not executed here."),
    )
    is_erased = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("Whether its thread is being erased."),
    )
    uncounted_from = models.PositiveIntegerField(
        null=True,
        default=1,
        db_default=1,
        editable=False,
        help_text=_("The first turn whose reply is not in the usage totals. Null: all are."),
    )
    finish_reason = models.CharField(max_length=50, blank=True)
    error_code = models.CharField(max_length=50, blank=True)
    error_message = models.TextField(blank=True)
    message_refused = models.BooleanField(
        default=False,
        editable=False,
        help_text=_("Whether its message was refused. Models never receive it then."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = KeptRuns()
    every = models.Manager()  # noqa: DJ012  # no field

    class Meta:
        ordering = ["-created_at"]
        base_manager_name = "every"
        constraints = [
            models.UniqueConstraint(fields=["thread", "number"], name="run_number"),
            models.UniqueConstraint(
                fields=["thread"],
                condition=Q(parent__isnull=True, status__in=sorted(ACTIVE_RUNS)),
                name="one_active_root_run_per_thread",
            ),
            models.UniqueConstraint(
                fields=["parent_call", "parent_index"],
                condition=Q(parent_call__isnull=False),
                name="one_run_per_delegated_task",
            ),
        ]
        indexes = [
            models.Index(
                fields=["wake_at"], condition=Q(wake_at__isnull=False), name="run_wake_at"
            ),
            # People's runs, which have no trigger, are not in this index.
            models.Index(
                fields=["trigger"], condition=Q(trigger__isnull=False), name="run_trigger"
            ),
            models.Index(fields=["ended_at"], name="run_ended_at"),
            # Open runs, and those that ended in the last seconds.
            models.Index(
                fields=["owner", "uncounted_from"],
                condition=Q(uncounted_from__isnull=False),
                name="run_uncounted",
            ),
            # For a person's list, newest first: the database reads one page and not all their runs.
            # Web pages order by the time, the API by id.
            models.Index(fields=["owner", "created_at", "id"], name="run_of_owner"),
            models.Index(fields=["owner", "id"], name="run_id_of_owner"),
            models.Index(fields=["owner", "ended_at"], name="run_ended_of_owner"),
        ]
        permissions = [("view_all_runs", _("Can see the runs of all users"))]

    def __str__(self) -> str:
        return f"run {self.id}"

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED_RUNS

    @property
    def spec(self) -> dict[str, Any]:
        """The fields of the `agents.spec.AgentSpec` that it uses."""
        return self.subagent_spec or self.agent_version.spec


class RunClock(models.Model):
    """The narrow row that every write of a run updates: fence, lease, next seq, totals.

    `lease_until` is in seconds since 1970 on the database's clock. A driver may write only while
    `fence` is the number that it got with its claim. The totals are sums over the model calls.
    """

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="clock"
    )
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.FloatField(null=True)
    lease_holder = models.CharField(max_length=100, blank=True)
    lost_drivers = models.PositiveSmallIntegerField(
        default=0, help_text=_("Consecutive drivers that died before the model's next reply.")
    )
    seq = models.PositiveBigIntegerField(default=0)
    cancel_requested = models.BooleanField(default=False)
    cancel_reason = models.CharField(max_length=200, blank=True)
    turn = models.PositiveIntegerField(default=0)
    active_ms = models.PositiveBigIntegerField(
        default=0, help_text=_("Time that drivers spent on it, without waiting for people.")
    )
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    cost_microusd = models.PositiveBigIntegerField(default=0)
    cost_known = models.BooleanField(
        default=True, help_text=_("False after a model call with an unknown price.")
    )
    noticed = models.BooleanField(
        default=False,
        help_text=_("Whether another process has changed the run since it was claimed."),
    )

    class Meta:
        indexes = [models.Index(fields=["lease_until"], name="run_clock_lease")]

    def __str__(self) -> str:
        return f"clock of run {self.run_id}"

    @property
    def total_tokens(self) -> int:
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )

    @property
    def cost(self) -> Decimal | None:
        """US dollars, or None if a price is unknown."""
        return Decimal(self.cost_microusd) / 1_000_000 if self.cost_known else None


class RemoteTrace(models.Model):
    """The remote span that requested a run, if the request named one and traces are on."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    traceparent = models.CharField(max_length=55)

    def __str__(self) -> str:
        return f"trace of run {self.run_id}"


class EndedRun(models.Model):
    """The end of a run, stored if a feature wants a notification and deleted after it.

    Workers can notify from `due_at` on. A worker that starts to notify sets `due_at` to the time
    when others may try. If a Python program handles the ends of its runs, `due_at` is first an hour
    after the end: until that time only the program notifies.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    due_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return f"end of run {self.run_id}"


class RunEvent(models.Model):
    """One event. `seq` counts from 1 within the run; `data` is a JSON object as text."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=40)
    data = models.TextField()
    version = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["run_id", "seq"]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.seq} {self.type}"
