"""What the model is told: a thread's messages and the results of its tool calls, from the rows.

Invariant 2: history is derived from the journal. Crashed, cancelled, rejected, denied and failed
calls are told apart in words.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from agents.engine.journal_rows import Call
from agents.events.append import dump
from agents.models import Epoch, Message, MessageRole, Run, ToolCall
from agents.providers.base import Role
from agents.states import ToolCallStatus

INTERRUPTED = (
    "The worker was lost while this call ran: it may have happened, in part or in whole. "
    "Check before you repeat it."
)
BAD_ENDINGS = {
    "refusal": ("refusal", "The model refused to answer."),
    "model_context_window_exceeded": (
        "context_window",
        "The conversation no longer fits into the model's context window.",
    ),
}
"""Stop reasons that fail a run, with its error code and message. Such replies are not sent back."""

_WITHOUT_RESULT = {
    ToolCallStatus.INTERRUPTED: INTERRUPTED,
    ToolCallStatus.CANCELLED: "The run was cancelled before this call had a result; if it had "
    "begun, it may have happened in part.",
    ToolCallStatus.DENIED: "The policy does not allow this call; it was not made.",
}


def result_block(call_id: str, result: str, *, is_error: bool) -> str:
    """A tool_result block as JSON text. `result` is JSON text already and is not parsed again."""
    error = ',"is_error":true' if is_error else ""
    return f'{{"type":"tool_result","tool_use_id":{dump(call_id)},"content":{result}{error}}}'


def call_from_row(row: ToolCall) -> Call:
    return Call(
        turn=row.turn,
        position=row.position,
        call_id=row.call_id,
        tool=row.tool,
        input=row.input,
        effect=row.effect,
        status=row.status,
        attempt=row.attempt,
        is_error=row.is_error,
        code=row.code,
        result=row.result,
        edited_input=row.edited_input,
    )


def results_json(calls: Iterable[Call]) -> str:
    """The tool_result blocks of one turn, in the order of its calls, as a JSON array."""
    return (
        "["
        + ",".join(
            result_block(
                call.call_id,
                call.result or dump(_WITHOUT_RESULT[ToolCallStatus(call.status)]),
                is_error=call.is_error or not call.result,
            )
            for call in calls
        )
        + "]"
    )


def thread_history(run: Run) -> Iterator[tuple[Role, str]]:
    """All that was said in the thread up to this run, and what the run itself holds so far.

    Yields (role, blocks as a JSON array). Turns whose calls are still open end the history: their
    results are appended by the driver that finishes them. Thoughts of earlier epochs are left out:
    models bind them to the prompt under which they were thought.
    """
    members = list(Run.objects.filter(thread_id=run.thread_id, number__lte=run.number))
    numbers = {member.pk: member.number for member in members}
    of_this_epoch = _of_this_epoch(run, members)
    notes = {member.pk: member.opening_note for member in members if member.opening_note}
    messages = list(Message.objects.filter(run__in=numbers))
    messages.sort(key=lambda message: (numbers[message.run_id], message.turn, message.pk))
    calls: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for row in ToolCall.objects.filter(run__in=numbers).order_by("turn", "position"):
        calls[row.run_id, row.turn].append(call_from_row(row))
    for message in messages:
        role: Role = "user" if message.role == MessageRole.USER else "assistant"
        content = message.content
        if role == "assistant" and not of_this_epoch(numbers[message.run_id], message.turn):
            content = _without_thoughts(content)
        if content == "[]" or message.stop_reason in BAD_ENDINGS:
            continue  # the model may not be sent an empty message, nor a refused one
        yield role, content
        if message.turn == 0 and message.run_id in notes:
            yield "user", dump([{"type": "text", "text": notes[message.run_id]}])
        made = calls.get((message.run_id, message.turn)) if role == "assistant" else None
        if made:
            if any(_is_open(call) for call in made):
                return
            yield "user", results_json(made)


def _of_this_epoch(run: Run, members: list[Run]) -> Callable[[int, int], bool]:
    """Whether the reply of (a run's number, turn) was made under the thread's present prompt."""
    epoch = Epoch.objects.filter(thread_id=run.thread_id).order_by("-number").first()
    if epoch is not None and epoch.first_run is not None:
        first = (epoch.first_run, epoch.first_turn)
        return lambda number, turn: (number, turn) >= first
    same: set[int] = set()  # of an epoch that began before its beginning was recorded
    for member in sorted(members, key=lambda member: member.number, reverse=True):
        if member.agent_version_id != run.agent_version_id:
            break
        same.add(member.number)
    return lambda number, turn: number in same


def _without_thoughts(content: str) -> str:
    if '"thinking"' not in content:
        return content
    blocks = [
        block
        for block in json.loads(content)
        if block["type"] not in ("thinking", "redacted_thinking")
    ]
    return dump(blocks)


def _is_open(call: Call) -> bool:
    return call.status in (
        ToolCallStatus.PENDING,
        ToolCallStatus.WAITING,
        ToolCallStatus.APPROVED,
        ToolCallStatus.STARTED,
    )


def open_turn(run: Run) -> list[Call]:
    """The calls of the run's last turn, if any of them is still open; else an empty list."""
    last = ToolCall.objects.filter(run=run).order_by("-turn").values_list("turn", flat=True).first()
    if last is None:
        return []
    calls = [
        call_from_row(row)
        for row in ToolCall.objects.filter(run=run, turn=last).order_by("position")
    ]
    return calls if any(_is_open(call) for call in calls) else []
