"""What was said and done, for traces of operators who have asked for that. Never keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents.telemetry.secret_masks import mask_secrets
from agents.telemetry.spans import LONGEST, AttributeValue

_SHORT = 1_000
"""Characters of an error's message."""


def harmless(text: str) -> str:
    """Without what looks like a key, in one piece of bounded length."""
    return mask_secrets(text[: 2 * LONGEST])[:LONGEST]


def short(text: str) -> str:
    """A message for people: one line without keys."""
    return " ".join(mask_secrets(text[: 4 * _SHORT]).split())[:_SHORT]


def reply_message(blocks: Sequence[dict[str, Any]], finish_reason: str) -> str:
    """A model's reply in the form of the conventions, as JSON."""
    parts = [part for block in blocks if (part := _part(block))]
    message = {"role": "assistant", "parts": parts, "finish_reason": finish_reason}
    return json.dumps([message], ensure_ascii=False)


def user_message(blocks: Sequence[dict[str, Any]]) -> str:
    """What a person said, likewise."""
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
    """The input and the result of a tool call."""
    found: dict[str, AttributeValue] = {"gen_ai.tool.call.arguments": harmless(given)}
    if result is not None:
        text = result if isinstance(result, str) else json.dumps(result, default=str)
        found["gen_ai.tool.call.result"] = harmless(text)
    return found
