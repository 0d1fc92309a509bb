"""Effects of a decision on a memory edit: the decision itself makes the edit.

Therefore, no time passes between the two in which the file could change, the worker could die, or
somebody could cancel the run.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from agents.events.append import EventDraft, dump
from agents.events.catalogue.tool_calls import ToolCompleted
from agents.events.preview import preview
from agents.models import ApprovalRequest, ToolCall
from agents.services.errors import InvalidRequest
from agents.states import (
    TOOL_CALL_TRANSITIONS,
    Decision,
    ToolCallStatus,
    check_transition,
)
from memory.actions.edits import apply_edit, check_edited_content
from memory.events import MemoryChanged
from memory.models import MemoryEditRequest


def carry_out_edit(request: ApprovalRequest, call: ToolCall, by_id: int) -> list[EventDraft]:
    """Make an approved edit, and end its call. The run and the request are locked."""
    edit = request.memory_edit
    content = edit.proposed_content
    changed = request.decision == Decision.EDIT
    if changed:
        content = edited_content(edit, request.edited_input)
    revision = apply_edit(edit, content, by_id=by_id)
    check_transition(TOOL_CALL_TRANSITIONS, call.status, ToolCallStatus.SUCCEEDED)
    call.status = ToolCallStatus.SUCCEEDED
    call.is_error = False
    call.code = ""
    text = _told(edit, revision, content if changed else None)
    call.result = dump(text)
    call.started_at = call.finished_at = timezone.now()
    call.save()
    return [
        MemoryChanged(
            path=edit.path,
            operation=edit.operation,
            revision=revision,
            approval_id=request.id,
        ),
        ToolCompleted(call_id=call.call_id, output=preview(text)),
    ]


def edited_content(edit: MemoryEditRequest, arguments: Any) -> str:
    """Return the content of an edited file. Raises `InvalidRequest` for any other input."""
    content = (
        arguments.get("content") if isinstance(arguments, dict) and len(arguments) == 1 else None
    )
    if not isinstance(content, str):
        raise InvalidRequest('An edit of the memory needs the input {"content": "the whole file"}.')
    check_edited_content(edit.agent_id, edit.path, content)
    return content


def _told(edit: MemoryEditRequest, revision: int, edited: str | None) -> str:
    """Return the result of the call for the model."""
    if edit.operation == "delete":
        return f"A person approved it: {edit.path} is deleted."
    if edited is None:
        return f"A person approved it: {edit.path} is saved (revision {revision})."
    return (
        f"A person changed the content and saved {edit.path} (revision {revision}). "
        f"It is now:\n\n{preview(edited)}"
    )
