"""The messages of a thread, append-only."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.run import Run


class MessageRole(models.TextChoices):
    USER = "user", _("user")
    ASSISTANT = "assistant", _("assistant")


PERSON, AGENT, MODEL = "person", "agent", "model"
"""`Message.author` of a person's request, of a request by another run's agent, and of a reply."""
UPLOADS = "uploads"
"""The author of the blocks about the files of a message that joined a run. They follow it."""


class Message(models.Model):
    """A person's message, a model's reply, or a note for the model.

    `content` is the JSON text of a list of content blocks. It is written once and sent to the model
    unchanged. Results of tools are not stored here: they are derived from the journal (`ToolCall`).
    In the conversation they follow the reply (position 0) and precede the notes of its turn.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="messages")
    turn = models.PositiveIntegerField(
        help_text=_(
            "0 for the person's message, otherwise the number of the model call in the run."
        )
    )
    position = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text=_(
            "Its place in the turn. 0: the message or the reply. From 1: the notes after it."
        ),
    )
    author = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text=_("The author: person, agent, model, or the source of a note. Empty: unknown."),
    )
    role = models.CharField(max_length=10, choices=MessageRole.choices)
    content = models.TextField()
    stop_reason = models.CharField(max_length=50, blank=True)
    model = models.CharField(max_length=200, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cache_read_tokens = models.PositiveIntegerField(default=0)
    cache_write_tokens = models.PositiveIntegerField(default=0)
    cost_microusd = models.PositiveBigIntegerField(
        null=True, help_text=_("The cost of this reply. Null: unknown.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "turn", "position"], name="one_message_per_position"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.run_id}/{self.turn}"

    @property
    def blocks(self) -> list[dict[str, Any]]:
        return json.loads(self.content)

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines."""
        return "\n\n".join(block["text"] for block in self.blocks if block["type"] == "text")
