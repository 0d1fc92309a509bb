"""Serializers for resuming runs."""

from __future__ import annotations

from agents.doors.rest.serializers import StrictSerializer, Text


class ResumeBody(StrictSerializer):
    """The message to the agent. Without it, the agent continues."""

    message = Text(required=False, allow_null=True)
