"""Rows of a conversation, and its export as the owner gets it."""

from __future__ import annotations

import json
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.utils import timezone

from agents.events.append import dump
from agents.features.conversation_export.downloads import pieces
from agents.features.conversation_export.reading import Conversation
from agents.models import ApprovalRequest, Effect, Message, MessageRole, Run, ToolCall
from agents.states import ApprovalStatus, ToolCallStatus


def reply(run: Run, turn: int, *blocks: Any, position: int = 0, **fields: Any) -> Message:
    """Store a reply. A text stands for a block of text."""
    written = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    values = {"role": MessageRole.ASSISTANT, "author": "model", "content": dump(written), **fields}
    return Message.objects.create(run=run, turn=turn, position=position, **values)


def call(
    run: Run, turn: int, given: Any = None, result: Any = "ok", tool: str = "execute", **fields: Any
) -> ToolCall:
    position = run.tool_calls.filter(turn=turn).count()
    values = {
        "call_id": f"call_{turn}_{position}",
        "input": dump({"command": "ls"} if given is None else given),
        "result": dump(result),
        "effect": Effect.EXTERNAL,
        "status": ToolCallStatus.SUCCEEDED,
        **fields,
    }
    return ToolCall.objects.create(run=run, turn=turn, position=position, tool=tool, **values)


def decide(of: ToolCall, by: User | None, **fields: Any) -> ApprovalRequest:
    values = {
        "status": ApprovalStatus.DECIDED,
        "decision": "approve",
        "decided_at": timezone.now(),
        **fields,
    }
    return ApprovalRequest.objects.create(
        run=of.run,
        tool_call=of,
        tool=of.tool,
        input=json.loads(of.input),
        digest="d",
        decided_by=by,
        **values,
    )


def exported(run: Run, form: str = "markdown") -> str:
    return "".join(pieces(Conversation(run.owner, run.thread_id), form))


def as_json(run: Run) -> Any:
    return json.loads(exported(run, "json"))


def body_of(response: Any) -> str:
    """Return the whole body, as an ASGI server reads it."""

    async def read() -> bytes:
        return b"".join([chunk async for chunk in response.streaming_content])

    return async_to_sync(read)().decode()
