"""Data classes of spans, without OpenTelemetry, and texts for them with masked secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

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


_SHORT = 1_000
"""Maximum length of an error message."""


def harmless(text: str) -> str:
    """Return `text` after `mask_secrets`, cut to `LONGEST` characters."""
    return mask_secrets(text[: 2 * LONGEST])[:LONGEST]


def short(text: str) -> str:
    """Return a message for people after `mask_secrets`, as one short line."""
    return " ".join(mask_secrets(text[: 4 * _SHORT]).split())[:_SHORT]


def reply_message(blocks: Sequence[dict[str, Any]], finish_reason: str) -> str:
    """Return a model's reply as JSON in the form of OpenTelemetry's semantic conventions."""
    parts = [part for block in blocks if (part := _part(block))]
    message = {"role": "assistant", "parts": parts, "finish_reason": finish_reason}
    return json.dumps([message], ensure_ascii=False)


def user_message(blocks: Sequence[dict[str, Any]]) -> str:
    """Return a person's message in the form of `reply_message`."""
    parts = [part for block in blocks if (part := _part(block))]
    return json.dumps([{"role": "user", "parts": parts}], ensure_ascii=False)


def _part(block: dict[str, Any]) -> dict[str, Any] | None:
    match block.get("type"):
        case "text":
            return {"type": "text", "content": harmless(block["text"])}
        case "thinking":
            return {"type": "reasoning", "content": harmless(block.get("thinking", ""))}
        case "tool_use":
            given = harmless(json.dumps(block["input"], ensure_ascii=False))
            return {
                "type": "tool_call", "id": block["id"], "name": block["name"], "arguments": given,
            }  # fmt: skip
    return None


def of_tool_call(given: str, result: object) -> dict[str, AttributeValue]:
    """Return the input and the result of a tool call as attributes."""
    found: dict[str, AttributeValue] = {"gen_ai.tool.call.arguments": harmless(given)}
    if result is not None:
        text = result if isinstance(result, str) else json.dumps(result, default=str)
        found["gen_ai.tool.call.result"] = harmless(text)
    return found


_KEYS = re.compile(
    r"""
      \bsk-(?:ant-|proj-|svcacct-|live-|test-)?[A-Za-z0-9_-]{20,}      # Anthropic, OpenAI
    | \b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}                           # Stripe
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                                    # AWS access key id
    | \bgh[pousr]_[A-Za-z0-9]{36,}\b | \bgithub_pat_[A-Za-z0-9_]{40,}  # GitHub
    | \bglpat-[A-Za-z0-9_-]{20,}                                       # GitLab
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}                                 # Slack
    | \bAIza[A-Za-z0-9_-]{35}                                          # Google
    | \bhf_[A-Za-z0-9]{30,}\b | \bnpm_[A-Za-z0-9]{36}\b                # Hugging Face, npm
    | \bpypi-[A-Za-z0-9_-]{50,}                                        # PyPI
    | \beyJ[A-Za-z0-9_-]{10,500}\.eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,}  # JSON web token
    | -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]{0,30}PRIVATE\ KEY-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
# The lengths are limited, so that matching takes linear time for any text.
_IN_URL = re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,100}):([^\s/@]{3,200})@")

MASK = "[secret withheld]"


def mask_secrets(text: str) -> str:
    """Mask what looks like an API key, a private key or a password in a URL."""
    return _IN_URL.sub(rf"\1:{MASK}@", _KEYS.sub(MASK, text))
