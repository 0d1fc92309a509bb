"""Serializers for transcripts and tool calls. Blocks are the model's, without its private data."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

from rest_framework import serializers

from agents.doors.rest.list_queries import ordering
from agents.doors.rest.serializers import PageQuery, StrictSerializer, Text
from agents.events.preview import cut_text, preview, preview_input
from agents.models import Effect, Message, MessageRole, ToolCall
from agents.selectors.conversation import Turn
from agents.states import ToolCallStatus

WHOLE_BYTES = 1_000_000
"""Limit for one text of an input or result. A longer text is cut, with a note."""
CALL_ORDER = {"turn": "id"}


class TranscriptQuery(PageQuery):
    """A page of turns; `limit` is the number of turns.

    A turn is a reply of the model, the results of its calls, and the messages before the next
    reply.
    """


class MessageShape(serializers.Serializer[object]):
    """A message. Role `tool` has the results of the previous reply's calls, in order."""

    run = serializers.CharField()
    turn = serializers.IntegerField()
    role = serializers.ChoiceField(choices=["user", "assistant", "tool"])
    content = serializers.ListField(child=serializers.DictField())
    stop_reason = serializers.CharField(allow_blank=True)
    model = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )


def show_turn(turn: Turn) -> Iterator[dict[str, Any]]:
    """Yield the messages of a turn in order: the reply, results of calls, later messages."""
    results = _results_of(turn)
    for message in turn.messages:
        if message.role == MessageRole.USER and turn.place[1] and results is not None:
            yield results
            results = None
        yield _message(turn, message)
    if results is not None:
        yield results


def _message(turn: Turn, message: Message) -> dict[str, Any]:
    return {
        "run": turn.run_id,
        "turn": turn.place[1],
        "role": message.role,
        "content": [shown_block(block) for block in [*message.blocks, *_attached(message)]],
        "stop_reason": message.stop_reason,
        "model": message.model,
        "created_at": _utc(message.created_at),
    }


def _attached(message: Message) -> list[dict[str, Any]]:
    """Return the blocks that describe the attached files to the model."""
    is_first = message.turn == 0 and message.role == MessageRole.USER
    return json.loads(message.run.attachments) if is_first and message.run.attachments else []


def _results_of(turn: Turn) -> dict[str, Any] | None:
    if not turn.calls:
        return None
    finished = [call.finished_at for call in turn.calls if call.finished_at]
    return {
        "run": turn.run_id,
        "turn": turn.place[1],
        "role": "tool",
        "content": [_result(call) for call in turn.calls],
        "stop_reason": "",
        "model": "",
        "created_at": _utc(max(finished)) if finished else None,
    }


def _result(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": call.call_id,
        "tool": call.tool,
        "status": call.status,
        "is_error": call.is_error,
        "content": shown_result(call, preview),
    }


def shown_block(block: dict[str, Any]) -> dict[str, Any]:
    """Return the block without signatures, encrypted thinking and the bytes of pictures."""
    kind = block.get("type")
    if kind == "thinking":
        return {"type": kind, "thinking": block.get("thinking", "")}
    if kind == "redacted_thinking":
        return {"type": kind}
    source = block.get("source")
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        size = len(source["data"]) * 3 // 4
        kept = {name: value for name, value in source.items() if name != "data"}
        return {**block, "source": {**kept, "bytes": size}}
    return block


def shown_result(call: ToolCall, cut: Any) -> str | list[dict[str, Any]] | None:
    """Return a call's result, with each text as returned by the function `cut`.

    Returns None if there is no result.
    """
    content = call.result_content
    if content is None or isinstance(content, str):
        return None if content is None else cut(content)
    return [
        {**block, "text": cut(block["text"])}
        if isinstance(block.get("text"), str)
        else shown_block(block)
        for block in content
    ]


class ToolCallQuery(PageQuery):
    tool = Text(max_length=200, required=False)
    status = serializers.ChoiceField(choices=ToolCallStatus.values, required=False)
    turn = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    ordering = ordering("turn")


class OneToolCallQuery(StrictSerializer):
    turn = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        help_text="Where a model's server has given an id twice; else the last one.",
    )


class ToolCallShape(serializers.Serializer[ToolCall]):
    """A tool call. In lists, long texts of `input` and `result` are cut, with the missing size."""

    call_id = serializers.CharField()
    turn = serializers.IntegerField()
    position = serializers.IntegerField()
    tool = serializers.CharField()
    effect = serializers.ChoiceField(choices=Effect.choices)
    status = serializers.ChoiceField(choices=ToolCallStatus.choices)
    is_error = serializers.BooleanField()
    code = serializers.CharField(allow_blank=True)
    attempt = serializers.IntegerField()
    input = serializers.SerializerMethodField()
    edited_input = serializers.SerializerMethodField()
    result = serializers.SerializerMethodField()
    started_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    finished_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )

    def get_input(self, call: ToolCall) -> dict[str, Any]:
        """Return the input from the model."""
        return self.cut_input(call.input)

    def get_edited_input(self, call: ToolCall) -> dict[str, Any] | None:
        """Return the input after a person's edit, which ran instead. Null if it was not edited."""
        return self.cut_input(call.edited_input) if call.edited_input else None

    def get_result(self, call: ToolCall) -> str | list[dict[str, Any]] | None:
        return shown_result(call, self.cut_text)

    def cut_input(self, text: str) -> dict[str, Any]:
        found: dict[str, Any] = preview_input(_json(text))
        return found

    def cut_text(self, text: str) -> str:
        return preview(text)


class WholeToolCallShape(ToolCallShape):
    """A whole tool call. Only texts of more than a million bytes are cut."""

    def cut_input(self, text: str) -> dict[str, Any]:
        found = _json(text)
        return {name: _cut_value(value) for name, value in found.items()}

    def cut_text(self, text: str) -> str:
        return cut_text(text, WHOLE_BYTES)


def _cut_value(value: Any) -> Any:
    return cut_text(value, WHOLE_BYTES) if isinstance(value, str) else value


def _json(text: str) -> dict[str, Any]:
    found = json.loads(text)
    return found if isinstance(found, dict) else {"input": found}


def _utc(moment: datetime.datetime) -> str:
    field = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
    return str(field.to_representation(moment))
