"""Limits of runs and windows, their use, and requests for more."""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models import Agent, ApprovalRequest, Run

BUDGET = "budget"
"""The kind of requests for more, their `tool`, and the `Run.wait_reason` of runs that wait."""

OF_NOBODY = "Choose the agent, the user, or both, whose runs the budget limits."
WITHOUT_LIMIT = "Set a limit: of tokens, of cost, or both."


class Period(models.TextChoices):
    DAY = "day", _("day")
    MONTH = "month", _("month")


class Budget(models.Model):
    """The limit of an agent, a user, a user with one agent, or a trigger for a day or a month."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    agent = models.ForeignKey(
        Agent,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="budgets",
        help_text=_("The agent that it limits. Empty: all agents."),
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="budgets",
        help_text=_("The user that it limits. Empty: all users together."),
    )
    trigger = models.CharField(
        max_length=ID_LENGTH,
        null=True,
        blank=True,
        editable=False,
        help_text=_("The id of a `Run.trigger`. Only its runs count."),
    )
    trigger_name = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("The name of the trigger."),
    )
    period = models.CharField(
        max_length=10,
        choices=Period.choices,
        default=Period.MONTH,
        help_text=_("By the calendar, in the time zone of each thread."),
    )
    max_tokens = models.PositiveBigIntegerField(
        null=True, blank=True, help_text=_("All tokens together. Empty: no limit.")
    )
    max_cost = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text=_("US dollars. Empty: no limit."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(agent__isnull=False) | Q(user__isnull=False) | Q(trigger__isnull=False),
                name="budget_of_somebody",
                violation_error_message=OF_NOBODY,
            ),
            models.CheckConstraint(
                condition=Q(max_tokens__isnull=False) | Q(max_cost__isnull=False),
                name="budget_limits_something",
                violation_error_message=WITHOUT_LIMIT,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.of}, a {self.period}"  # also in the history of the admin, in each language

    @property
    def of(self) -> str:
        """The owner of the budget, in words."""
        if self.trigger is not None:
            return self.trigger_name
        if self.agent is None:
            return str(self.user)
        return f"{self.user} with {self.agent}" if self.user is not None else str(self.agent)


class Allowance(models.Model):
    """The limits, the use and the reservations of one run, or of one window of a budget.

    The use of a run's descendants counts in its allowance, too. Reserved is the worst case of the
    calls in progress. `max_*` are the defined limits, None without a limit, and people have added
    `extra_*`. Costs are in millionths of a US dollar.
    """

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, null=True, blank=True, related_name="allowance"
    )
    budget = models.ForeignKey(
        Budget, on_delete=models.CASCADE, null=True, blank=True, related_name="windows"
    )
    window = models.CharField(
        max_length=10, blank=True, help_text=_("For example 2026-11-22 or 2026-11.")
    )
    max_tokens = models.PositiveBigIntegerField(null=True)
    max_microusd = models.PositiveBigIntegerField(null=True)
    extra_tokens = models.PositiveBigIntegerField(default=0)
    extra_microusd = models.PositiveBigIntegerField(default=0)
    used_tokens = models.PositiveBigIntegerField(default=0)
    used_microusd = models.PositiveBigIntegerField(default=0)
    reserved_tokens = models.PositiveBigIntegerField(default=0)
    reserved_microusd = models.PositiveBigIntegerField(default=0)
    warned_tokens = models.BooleanField(default=False)
    warned_cost = models.BooleanField(default=False)
    allows_unpriced = models.BooleanField(
        default=False, help_text=_("Calls with an unknown price are allowed.")
    )

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(run__isnull=False, budget__isnull=True)
                | Q(run__isnull=True, budget__isnull=False),
                name="allowance_of_run_or_window",
            ),
            models.UniqueConstraint(
                fields=["budget", "window"],
                condition=Q(budget__isnull=False),
                name="one_allowance_per_window",
            ),
        ]

    def __str__(self) -> str:
        return f"window {self.window} of {self.budget}" if self.budget_id else str(self.run)

    @property
    def token_limit(self) -> int | None:
        return None if self.max_tokens is None else self.max_tokens + self.extra_tokens

    @property
    def microusd_limit(self) -> int | None:
        return None if self.max_microusd is None else self.max_microusd + self.extra_microusd


class BudgetRequest(models.Model):
    """The allowance of a request for more.

    The caller locks the run of the request, so that it has one pending request for each allowance.
    """

    request = models.OneToOneField(
        ApprovalRequest, on_delete=models.CASCADE, primary_key=True, related_name="budget_request"
    )
    allowance = models.ForeignKey(
        Allowance, on_delete=models.SET_NULL, null=True, related_name="requests"
    )

    def __str__(self) -> str:
        return str(self.request)


class RunBudget(models.Model):
    """The reservation and the wait of one run. The lock of the run's clock protects it."""

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="budget"
    )
    reserved_tokens = models.PositiveBigIntegerField(
        default=0, help_text=_("The maximum for the current model call.")
    )
    reserved_microusd = models.PositiveBigIntegerField(default=0)
    reserved_from = models.CharField(
        max_length=200, blank=True, help_text=_("The allowances that this was taken from.")
    )
    waits_for = models.ForeignKey(
        Allowance,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="waiting",
        help_text=_("The allowance that was used up when it was last parked for a budget."),
    )
    refusal_code = models.CharField(max_length=50, blank=True)
    refusal = models.TextField(
        blank=True,
        help_text=_(
            "The message with which it ends, because a person did not increase the budget."
        ),
    )

    def __str__(self) -> str:
        return f"budget of run {self.run_id}"


class OutsideReservation(models.Model):
    """The reservation of a model call outside of runs, for example for a title."""

    key = models.CharField(primary_key=True, max_length=200)
    reserved_tokens = models.PositiveBigIntegerField(help_text=_("The maximum for the model call."))
    reserved_microusd = models.PositiveBigIntegerField()
    reserved_from = models.TextField(help_text=_("The allowances that this was taken from."))
    until = models.DateTimeField(
        db_index=True, help_text=_("When it is released, because nobody waits for the reply.")
    )

    def __str__(self) -> str:
        return f"reservation of {self.key}"
