"""A run as a timeline: messages, calls, decisions and results by turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Max, Q
from django.db.models.functions import Left, Length

from agents.doors.admin.numbers import between
from agents.doors.admin.text import (
    INLINE_CHARACTERS,
    ShownInput,
    ShownText,
    pretty,
    shown,
    shown_input,
    shown_input_json,
    shown_result_json,
)
from agents.events.read import ROWS_AT_ONCE
from agents.hidden_text import visible
from agents.models import ApprovalRequest, Message, MessageRole, Run, ToolCall

TURNS_PER_PAGE = 100


@dataclass(frozen=True)
class ShownPart:
    """A content block of a message. `kind` is text, thinking, or the block's own type."""

    kind: str
    text: ShownText


@dataclass(frozen=True)
class ShownDecision:
    """An approval request of a call, with its decision."""

    request: ApprovalRequest
    reason: ShownText
    edited_input: ShownInput | None


@dataclass(frozen=True)
class ShownCall:
    """A tool call. `edited_input` is the input that ran if a person changed it."""

    call: ToolCall
    tool: str
    call_id: str
    input: ShownInput
    edited_input: ShownInput | None
    result: ShownText | None
    duration: str
    decisions: tuple[ShownDecision, ...]


@dataclass
class Turn:
    """A model call and its tool calls. Turn 0 is the person's message."""

    number: int
    message: Message | None = None
    parts: list[ShownPart] = field(default_factory=list)
    calls: list[ShownCall] = field(default_factory=list)
    notes: list[ShownPart] = field(default_factory=list)
    """Messages of the engine to the model after the turn."""

    @property
    def is_request(self) -> bool:
        return self.message is not None and self.message.role == MessageRole.USER


def last_turn(run: Run) -> int:
    """Return the number of the run's latest turn, with or without a finished reply."""
    last = run.messages.aggregate(last=Max("turn"))["last"] or 0
    called = run.tool_calls.aggregate(last=Max("turn"))["last"] or 0
    return max(last, called)


def turns_of(
    runs: Sequence[Run], *, first: int = 0, last: int = TURNS_PER_PAGE
) -> dict[str, list[Turn]]:
    """Return the turns `first` to `last` of each run, by run id, with three queries in total.

    Reads only the start of long inputs and results.
    """
    window = Q(run__in=runs, turn__gte=first, turn__lte=last)
    turns: dict[str, dict[int, Turn]] = {run.pk: {} for run in runs}
    messages = Message.objects.filter(window).order_by("run_id", "turn", "position")
    for message in messages.iterator(chunk_size=ROWS_AT_ONCE):
        parts = list(_parts(message.blocks))
        del message.content  # may be megabytes; a page shows the start of parts
        turn = _turn(turns, message.run_id, message.turn)
        if message.role == MessageRole.USER and message.turn:
            turn.notes += parts
            continue
        turn.message = message
        turn.parts = parts
    decisions = _decisions(
        Q(tool_call__run__in=runs, tool_call__turn__gte=first, tool_call__turn__lte=last)
    )
    calls = (
        ToolCall.objects.filter(window)
        .defer("input", "edited_input", "result")
        .annotate(
            **{f"{name}_start": Left(name, INLINE_CHARACTERS) for name in _TEXTS},
            **{f"{name}_size": Length(name) for name in _TEXTS},
        )
        .order_by("run_id", "turn", "position")
    )
    for call in calls:
        requests = tuple(decisions.get(call.pk, ()))
        _turn(turns, call.run_id, call.turn).calls.append(_shown_call(call, requests))
    return {
        run_id: [by_number[number] for number in sorted(by_number)]
        for run_id, by_number in turns.items()
    }


_TEXTS = ("input", "edited_input", "result")


def _turn(turns: dict[str, dict[int, Turn]], run_id: str, number: int) -> Turn:
    return turns[run_id].setdefault(number, Turn(number))


def _parts(blocks: Iterable[dict[str, Any]]) -> Iterable[ShownPart]:
    for block in blocks:
        kind = str(block.get("type", ""))
        if kind == "tool_use":
            continue  # its journal row has more details
        if kind == "text":
            yield ShownPart(kind, shown(str(block.get("text", ""))))
        elif kind == "thinking":
            yield ShownPart(kind, shown(str(block.get("thinking", ""))))
        elif kind == "image":
            yield ShownPart(kind, shown(str(block.get("source", {}).get("media_type", ""))))
        else:
            yield ShownPart(kind, shown(pretty(block)))


def _decisions(window: Q) -> dict[int | None, list[ShownDecision]]:
    """Return the approval requests of the window's calls, by the call's key.

    Private requests are missing: only their person sees them, outside of the admin.
    """
    found: dict[int | None, list[ShownDecision]] = defaultdict(list)
    requests = (
        ApprovalRequest.objects.filter(window, is_private=False)
        .defer("input")
        .select_related("decided_by")
        .order_by("created_at", "id")
    )
    for request in requests:
        edited = request.edited_input
        found[request.tool_call_id].append(
            ShownDecision(
                request, shown(request.reason), None if edited is None else shown_input(edited)
            )
        )
    return found


def _shown_call(call: Any, decisions: tuple[ShownDecision, ...]) -> ShownCall:
    """Return a displayed call. `call` has the start and size of its texts as annotations."""
    return ShownCall(
        call=call,
        tool=visible(call.tool),
        call_id=visible(call.call_id),
        input=shown_input_json(call.input_start, call.input_size),
        edited_input=(
            shown_input_json(call.edited_input_start, call.edited_input_size)
            if call.edited_input_size
            else None
        ),
        result=(
            shown_result_json(call.result_start, call.result_size) if call.result_size else None
        ),
        duration=between(call.started_at, call.finished_at)
        if call.started_at and call.finished_at
        else "",
        decisions=decisions,
    )
