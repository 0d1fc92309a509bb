"""A span before it leaves: plain values, made without OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

AttributeValue = str | bool | int | float | Sequence[str]

LONGEST = 20_000
"""Characters of one attribute; more is cut."""
PROVIDERS = {
    "google": "gcp.gemini",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "scripted": "vel.scripted",
}
"""Where the conventions call a provider otherwise."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Of one run. `span_id` is the run's own span, below which all that it does hangs.

    `parent_id` is that of the call that delegated to it, or of another program's span.
    """

    trace_id: int
    span_id: int
    parent_id: int | None = None
    sampled: bool = True


@dataclass(frozen=True, slots=True)
class Span:
    """Times are nanoseconds since 1970. `error` is a short code; empty where all went well."""

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
