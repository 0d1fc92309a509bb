"""Runs that are part of another program's trace."""

from __future__ import annotations

from agents.models import RemoteTrace, Run
from agents.telemetry.ids import format_traceparent, parse_traceparent
from agents.telemetry.wanted import traces_wanted


def note_remote_trace(run: Run, header: str) -> None:
    """Store the remote span that requested `run`, if traces are on and the header is valid."""
    if not header or not traces_wanted():
        return
    parent = parse_traceparent(header)
    if parent is not None:
        RemoteTrace.objects.create(run=run, traceparent=format_traceparent(parent))
