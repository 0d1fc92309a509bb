"""Telling people that something waits."""

from __future__ import annotations

from agents.models import ApprovalRequest


def notify_of(request: ApprovalRequest) -> None:
    """Put a message about a new request on its way, in the request's transaction."""
