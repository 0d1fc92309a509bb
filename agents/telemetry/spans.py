"""Data classes of spans, without OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

AttributeValue = str | bool | int | float | Sequence[str]

LONGEST = 20_000
"""Maximum characters of one attribute. Longer values are cut."""
PROVIDERS = {
    "google": "gcp.gemini",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "scripted": "vel.scripted",
}
"""Names of providers in the semantic conventions, if they differ."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of one run. `span_id` is the run's own span, the parent of its other spans.

    `parent_id` is the span of the call that delegated to the run, or of another program.
    """

    trace_id: int
    span_id: int
    parent_id: int | None = None
    sampled: bool = True


@dataclass(frozen=True, slots=True)
class Span:
    """A span. Times are in nanoseconds since 1970. `error` is a short code; empty on success."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    start: int
    end: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    is_client: bool = False
    error: str = ""
    message: str = ""


def nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000


def provider_name(provider: str) -> str:
    return PROVIDERS.get(provider, provider)
