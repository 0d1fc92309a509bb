"""The journal: every tool call with its input and its result."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.run import Run
from agents.states import OPEN_CALLS, ToolCallStatus


class Effect(models.TextChoices):
    """The effect of a call, which decides whether it can run again after a crash."""

    READ = "read", _("reads")  # only rows that commit together with its result
    WRITE = "write", _("changes the workspace")
    EXTERNAL = "external", _("reaches outside")


class ToolCall(models.Model):
    """One call of a tool by the model. `input` and `result` are JSON texts, written once.

    `input` is the model's input and never changes. `edited_input` is a person's edit of it and is
    the input that ran. `result` is the content of the tool_result block: a JSON string or a JSON
    list of blocks.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tool_calls")
    turn = models.PositiveIntegerField()
    position = models.PositiveSmallIntegerField(
        help_text=_("Its position in the calls of the turn.")
    )
    call_id = models.CharField(max_length=200)
    tool = models.CharField(max_length=200)
    input = models.TextField()
    edited_input = models.TextField(blank=True)
    effect = models.CharField(max_length=10, choices=Effect.choices)
    status = models.CharField(
        max_length=20, choices=ToolCallStatus.choices, default=ToolCallStatus.PENDING
    )
    grant = models.ForeignKey(
        "agents.ApprovalGrant",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        related_name="tool_calls",
        help_text=_("The grant that allowed it without a request."),
    )
    attempt = models.PositiveSmallIntegerField(default=0)
    is_error = models.BooleanField(default=False)
    code = models.CharField(max_length=50, blank=True)
    result = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["run", "turn", "position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "turn", "position"], name="tool_call_position"),
        ]
        indexes = [
            # Few calls have a grant. Entries for the others would write one more page in each turn.
            models.Index(
                fields=["grant"], condition=models.Q(grant__isnull=False), name="tool_call_grant"
            ),
        ]
        permissions = [("approve_toolcall", _("Can decide the approval requests of all users"))]

    def __str__(self) -> str:
        return f"{self.tool} {self.call_id}"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_CALLS

    @property
    def effective_input(self) -> dict[str, Any]:
        """The input that runs: a person's edit if there is one, otherwise the model's input."""
        return json.loads(self.edited_input or self.input)

    @property
    def result_content(self) -> str | list[dict[str, Any]] | None:
        return json.loads(self.result) if self.result else None
