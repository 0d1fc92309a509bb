"""Resuming runs, on the wire."""

from __future__ import annotations

from agents.doors.rest.serializers import StrictSerializer, Text


class ResumeBody(StrictSerializer):
    """`message`: what the agent is told; without one, to continue."""

    message = Text(required=False, allow_null=True)
