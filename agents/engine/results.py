"""A tool's result in its two forms: whole for the model and the journal, short for watchers."""

from __future__ import annotations

import json
from typing import Any

from agents.engine.journal import Call
from agents.events.append import PREVIEW_BYTES, EventDraft, dump
from agents.middleware.base import ToolResult


def clean_text(text: str) -> str:
    """Text that every database and every model API takes: lone surrogates become `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def cut_text(text: str, limit: int) -> str:
    """`text` with at most about `limit` bytes: its head and tail, and a note of what is missing."""
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text
    head, tail = data[: limit * 2 // 3], data[-(limit // 3) :]
    missing = len(data) - len(head) - len(tail)
    return (
        head.decode("utf-8", "ignore")
        + f"\n[… {missing:,} bytes cut …]\n"
        + tail.decode("utf-8", "ignore")
    )


def render_result(result: ToolResult, limit: int) -> tuple[str, str]:
    """The result as (JSON text of the block's content, text for watchers).

    An empty result says so: the model API refuses empty text.
    """
    if result.blocks:
        rendered = dump(result.content)
        text = "\n".join(block.get("text", f"[{block['type']}]") for block in result.content)
        return rendered, text
    content = result.content
    text = content if isinstance(content, str) else dump(content)
    text = cut_text(clean_text(text), limit) or "[no output]"
    return dump(text), text


def preview(text: str) -> str:
    return cut_text(text, PREVIEW_BYTES)


def preview_input(given: Any) -> Any:
    """A tool's input as events show it: whole if it is short, else with its long strings cut."""
    if len(dump(given).encode()) <= PREVIEW_BYTES:
        return given
    return _shorten(given, PREVIEW_BYTES // 4)


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, limit)
    if isinstance(value, dict):
        return {key: _shorten(item, limit) for key, item in list(value.items())[:50]}
    if isinstance(value, list):
        return [_shorten(item, max(40, limit // max(1, len(value)))) for item in value[:50]]
    return value


def finished_event(call: Call, text: str, *, is_error: bool, code: str) -> EventDraft:
    """What watchers are told of a call that has ended."""
    if is_error:
        return (
            "tool.failed",
            {"call_id": call.call_id, "message": preview(text), "code": code or "tool_error"},
        )
    return ("tool.completed", {"call_id": call.call_id, "output": preview(text)})


def called_event(call: Call) -> EventDraft:
    return (
        "tool.called",
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "input": preview_input(json.loads(call.input)),
        },
    )
