"""Two forms of a tool's result: complete for model and journal, short for clients."""

from __future__ import annotations

import json

from agents.engine.storage.journal import Call
from agents.events.append import EventDraft, dump
from agents.events.catalogue.tool_calls import ToolCalled, ToolCompleted, ToolFailed, ToolRejected
from agents.events.preview import cut_text, preview, preview_input
from agents.middleware.base import ToolResult
from agents.states import ToolCallStatus


def clean_text(text: str) -> str:
    """Return `text` with `?` for lone surrogates, which UTF-8 cannot encode. NULs stay."""
    return text.encode("utf-8", "replace").decode("utf-8")


def render_result(result: ToolResult, limit: int) -> tuple[str, str]:
    """Return a result as JSON text for the model, and as a text for clients.

    Texts are cut to `limit` bytes, content blocks are not. An empty result is replaced by a note,
    because model APIs refuse empty text.
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
    """Return the event about a call that has ended. `text` is the text for clients."""
    if is_error:
        return ToolFailed(call_id=call.call_id, message=preview(text), code=code or "tool_error")
    return ToolCompleted(call_id=call.call_id, output=preview(text))


def called_event(call: Call) -> EventDraft:
    """Return the event about a call that the model requests."""
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
