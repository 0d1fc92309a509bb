"""Approval requests, each bound to exactly the data that the person saw, and grants."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.kernel.features import collect
from agents.models.agent import Agent
from agents.models.json_text import JSONTextField
from agents.models.run import Run
from agents.models.thread import Thread
from agents.models.tool_call import ToolCall
from agents.states import ApprovalStatus, Decision


class ApprovalKind(models.TextChoices):
    TOOL = "tool", _("tool call")


def request_kinds() -> list[tuple[str, Any]]:
    """Return the kinds of requests with their labels: tool calls, proposals, requests of runs."""
    kinds = [*collect("proposals", "PROPOSALS"), *collect("run_requests", "RUN_REQUESTS")]
    return [*ApprovalKind.choices, *((kind.name, kind.label) for _, kind in kinds)]


class ApprovalRequest(models.Model):
    """A request for a person's decision about the content that `digest` identifies.

    The content never changes: a changed call or proposal gets a new request.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="approvals")
    tool_call = models.ForeignKey(
        ToolCall, on_delete=models.CASCADE, null=True, blank=True, related_name="approvals"
    )
    kind = models.CharField(max_length=20, choices=request_kinds, default=ApprovalKind.TOOL)
    tool = models.CharField(max_length=200)
    input = JSONTextField()
    preview = JSONTextField(
        null=True, blank=True, help_text=_("The result of a trial of the call.")
    )
    prompt = models.TextField(blank=True, help_text=_("Why approval is required."))
    allowed_decisions = models.JSONField(default=list)
    digest = models.CharField(max_length=64)
    workspace_generation = models.PositiveBigIntegerField(default=0)
    approvals_needed = models.PositiveSmallIntegerField(
        default=1, help_text=_("The number of different people who must approve.")
    )
    self_approval = models.BooleanField(
        default=True, help_text=_("Whether the run's owner may approve.")
    )
    is_private = models.BooleanField(
        default=False, help_text=_("Whether only the run's owner can see and decide it.")
    )
    first_approver = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    first_approved_at = models.DateTimeField(null=True, blank=True)
    status = models.CharField(
        max_length=20,
        choices=ApprovalStatus.choices,
        default=ApprovalStatus.PENDING,
    )
    decision = models.CharField(max_length=20, choices=Decision.choices, blank=True)
    edited_input = JSONTextField(null=True, blank=True)
    reason = models.TextField(blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["tool_call"],
                condition=models.Q(status=ApprovalStatus.PENDING),
                name="one_pending_request_per_call",
            ),
        ]
        indexes = [
            models.Index(fields=["status", "id"], name="request_queue"),
            models.Index(
                fields=["expires_at"],
                condition=models.Q(status=ApprovalStatus.PENDING, expires_at__isnull=False),
                name="request_expiry",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.status})"


class ApprovalGrant(models.Model):
    """A permission for matching calls of one agent: scoped, expiring, counted, revocable.

    A grant turns "ask" into "allow". It never overrides a denial and does not apply to proposals.
    `condition` is `agents.spec.CallCondition`; empty means every input of the tool.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="grants")
    tool = models.CharField(max_length=200)
    condition = models.JSONField(default=dict, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("The user whose runs it covers. Empty: all users."),
    )
    thread = models.ForeignKey(
        Thread,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="grants",
        help_text=_("The thread that it covers. Empty: all threads."),
    )
    reason = models.TextField(blank=True)
    max_uses = models.PositiveIntegerField()
    uses = models.PositiveIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()
    request = models.ForeignKey(
        "agents.ApprovalRequest",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="grants",
        help_text=_("The approved request that created it."),
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["agent", "tool"], name="grant_lookup")]

    def __str__(self) -> str:
        return f"grant {self.pk}"
