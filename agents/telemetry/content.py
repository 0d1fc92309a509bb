"""Message content for traces, if operators have enabled it. Secrets are masked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents.telemetry.secret_masks import mask_secrets
from agents.telemetry.spans import LONGEST, AttributeValue

_SHORT = 1_000
"""Maximum length of an error message."""


def harmless(text: str) -> str:
    """Return `text` without secrets, cut to `LONGEST` characters."""
    return mask_secrets(text[: 2 * LONGEST])[:LONGEST]


def short(text: str) -> str:
    """Return a message for people, on one line and without secrets."""
    return " ".join(mask_secrets(text[: 4 * _SHORT]).split())[:_SHORT]


def reply_message(blocks: Sequence[dict[str, Any]], finish_reason: str) -> str:
    """Return a model's reply as JSON in the form of OpenTelemetry's semantic conventions."""
    parts = [part for block in blocks if (part := _part(block))]
    message = {"role": "assistant", "parts": parts, "finish_reason": finish_reason}
    return json.dumps([message], ensure_ascii=False)


def user_message(blocks: Sequence[dict[str, Any]]) -> str:
    """Return a person's message in the same form."""
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
