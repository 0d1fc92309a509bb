"""The JSON of an export. A change that old programs could misread needs a new `VERSION`."""

from __future__ import annotations

import datetime
import json
from functools import cache
from typing import Any

from rest_framework import serializers

from agents.api.serializers.runs import RunShape, StoredUploadShape
from agents.api.serializers.threads import ThreadShape
from agents.api.serializers.transcript import WholeToolCallShape, shown_block
from agents.doors.rest.operations import Shape
from agents.features.conversation_export.reading import Files, RunHead, Turn, Usage
from agents.models import ApprovalRequest, Message, MessageRole, Run, Thread
from agents.states import ApprovalStatus, Decision

FORMAT = "vel-conversation"
VERSION = 1
MICRO = 1_000_000


def _time(*, may_be_null: bool = False) -> serializers.DateTimeField:
    return serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=may_be_null
    )


class MessageUsageShape(serializers.Serializer[Message]):
    """`cost` is in US dollars, or null if the price is unknown."""

    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()
    cost = serializers.SerializerMethodField()

    def get_cost(self, message: Message) -> str | None:
        return _dollars(message.cost_microusd)


class ExportedMessageShape(serializers.Serializer[Message]):
    """A message. `content` has the model's blocks without signatures and bytes of pictures.

    `author` is person, agent (of another run), model, the source of a note of Vel, or empty if
    unknown.
    """

    role = serializers.ChoiceField(choices=MessageRole.choices)
    author = serializers.CharField(allow_blank=True)
    content = serializers.SerializerMethodField()
    stop_reason = serializers.CharField(allow_blank=True)
    model = serializers.CharField(allow_blank=True)
    usage = MessageUsageShape(source="*")
    created_at = _time()

    def get_content(self, message: Message) -> list[dict[str, Any]]:
        return [shown_block(block) for block in message.blocks]


class DecisionShape(serializers.Serializer[ApprovalRequest]):
    """A request for approval and its decision. The names are user names.

    `edited_input` is the input that a person approved instead, or null.
    """

    id = serializers.CharField()
    kind = serializers.CharField()
    status = serializers.ChoiceField(choices=ApprovalStatus.choices)
    prompt = serializers.CharField(allow_blank=True)
    decision = serializers.ChoiceField(choices=Decision.choices, allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    edited_input = serializers.JSONField(allow_null=True)
    first_approver = serializers.SerializerMethodField()
    first_approved_at = _time(may_be_null=True)
    decided_by = serializers.SerializerMethodField()
    decided_at = _time(may_be_null=True)
    created_at = _time()

    def get_first_approver(self, request: ApprovalRequest) -> str | None:
        return request.first_approver.get_username() if request.first_approver else None

    def get_decided_by(self, request: ApprovalRequest) -> str | None:
        return request.decided_by.get_username() if request.decided_by else None


class ExportedCallShape(WholeToolCallShape):
    """A tool call with its decisions. Only texts of more than a million bytes are cut."""

    decisions = DecisionShape(many=True)


class ExportedTurnShape(serializers.Serializer[Turn]):
    """Turn 0 has the message of the run, the others a reply and then the notes after it."""

    turn = serializers.IntegerField()
    messages = ExportedMessageShape(many=True)
    tool_calls = ExportedCallShape(many=True)


class ExportedRunShape(RunShape):
    """A run with its turns. `requests` are about the run itself, for example for more tokens."""

    uploads = StoredUploadShape(many=True)
    requests = DecisionShape(many=True)
    turns = ExportedTurnShape(many=True)


class ConversationUsageShape(MessageUsageShape):
    """The sums of all runs with those of subagents. Copied runs of a fork are not counted."""

    turns = serializers.IntegerField()


class ExportedFileShape(serializers.Serializer[object]):
    path = serializers.CharField()
    size = serializers.IntegerField()


class ConversationExportShape(serializers.Serializer[object]):
    """A conversation. `runs` are in order; `subagents` are the runs that they delegated.

    `files` are the present files that the agent can write, at most 1,000. `files_problem` is the
    reason why they are unavailable, or empty.
    """

    format = serializers.ChoiceField(choices=[FORMAT])
    version = serializers.ChoiceField(choices=[VERSION])
    exported_at = _time()
    thread = ThreadShape()
    owner = serializers.CharField()
    usage = ConversationUsageShape()
    runs = ExportedRunShape(many=True)
    subagents = ExportedRunShape(many=True)
    files = ExportedFileShape(many=True)
    files_truncated = serializers.BooleanField()
    files_problem = serializers.CharField(allow_blank=True)


def show_turn(turn: Turn, run: Run) -> dict[str, Any]:
    return {
        "turn": turn.number,
        "messages": [_show_message(message, run) for message in turn.messages],
        "tool_calls": [
            {
                **_shown(WholeToolCallShape, call),
                "decisions": _decisions(turn.decisions.get(call.pk, [])),
            }
            for call in turn.calls
        ],
    }


def _show_message(message: Message, run: Run) -> dict[str, Any]:
    shown = _shown(ExportedMessageShape, message)
    if message.turn == 0 and message.role == MessageRole.USER and run.attachments:
        attached = [shown_block(block) for block in json.loads(run.attachments)]
        return {**shown, "content": [*shown["content"], *attached]}
    return shown


def show_head(head: RunHead) -> dict[str, Any]:
    """Return a run without its turns."""
    return {
        **_shown(RunShape, head.run),
        "uploads": [_shown(StoredUploadShape, upload) for upload in head.uploads],
        "requests": _decisions(head.requests),
    }


def show_thread(thread: Thread) -> dict[str, Any]:
    return _shown(ThreadShape, thread)


def show_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cost": _dollars(usage.microusd),
        "turns": usage.turns,
    }


def show_files(files: Files) -> dict[str, Any]:
    return {
        "files": [{"path": file.path, "size": file.size} for file in files.listed],
        "files_truncated": files.is_cut,
        "files_problem": files.problem,
    }


def _decisions(requests: list[ApprovalRequest]) -> list[dict[str, Any]]:
    return [_shown(DecisionShape, request) for request in requests]


def _shown(shape: Shape, row: object) -> dict[str, Any]:
    found: dict[str, Any] = _serializer(shape).to_representation(row)
    return found


@cache
def _serializer(shape: Shape) -> serializers.Serializer[Any]:
    """Return one serializer for all rows, because a new one copies all of its fields."""
    return shape()


def _dollars(microusd: int | None) -> str | None:
    return None if microusd is None else f"{microusd / MICRO:.6f}"
