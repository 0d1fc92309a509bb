"""A tool's result in two forms: complete for the model and the journal, short for watchers."""

from __future__ import annotations

import json

from agents.engine.storage.journal import Call
from agents.events.append import EventDraft, dump
from agents.events.catalogue.tool_calls import ToolCalled, ToolCompleted, ToolFailed, ToolRejected
from agents.events.preview import cut_text, preview, preview_input
from agents.middleware.base import ToolResult
from agents.states import ToolCallStatus


def clean_text(text: str) -> str:
    """Return text that every database and model API accepts: lone surrogates become `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def render_result(result: ToolResult, limit: int) -> tuple[str, str]:
    """Return the result as (JSON text of the block's content, text for watchers).

    An empty result is replaced by a note: the model API refuses empty text.
    """
    if result.blocks:
        rendered = dump(result.content)
        text = "\n".join(block.get("text", f"[{block['type']}]") for block in result.content)
        return rendered, text
    content = result.content
    text = content if isinstance(content, str) else dump(content)
    text = cut_text(clean_text(text), limit) or "[no output]"
    return dump(text), text


def finished_event(call: Call, text: str, *, is_error: bool, code: str) -> EventDraft:
    """Return the event for watchers about a call that has ended."""
    if is_error:
        return ToolFailed(call_id=call.call_id, message=preview(text), code=code or "tool_error")
    return ToolCompleted(call_id=call.call_id, output=preview(text))


def called_event(call: Call) -> EventDraft:
    """Return the event for watchers about a call that the model makes."""
    shown = preview_input(json.loads(call.input))
    if call.status == ToolCallStatus.INVALID:
        return ToolRejected(
            call_id=call.call_id,
            tool=call.tool,
            input=shown,
            code=call.code,
            message=json.loads(call.result),
        )
    return ToolCalled(call_id=call.call_id, tool=call.tool, input=shown)
