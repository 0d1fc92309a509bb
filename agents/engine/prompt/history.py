"""A thread's history for the model: messages, replies and results of calls, from the rows.

Invariant 2: the history comes from the journal. Crashed, cancelled, rejected, denied and failed
calls have different texts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from agents.engine.prompt.conversation import clip_blocks, clip_result
from agents.engine.storage.journal import Call
from agents.events.append import dump
from agents.models import Compaction, Epoch, Message, MessageRole, Run, ToolCall
from agents.providers.base import Role, Usage
from agents.settings import MachineSettings
from agents.states import ToolCallStatus

Place = tuple[int, int]
"""The place of a message in a thread: the run's number, and the turn in it."""

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
    """Return a tool_result block as JSON text. `result` is JSON text and is not parsed."""
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
    """Return the tool_result blocks of one turn as a JSON array, in the order of the calls."""
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


@dataclass(slots=True)
class Said:
    """One turn of a stored conversation: a message or a reply, with its calls and notes.

    `place` is (the run's number, the turn). `parts` are (role, blocks as a JSON array). They are
    followed by the results of `calls`, and then by `notes`, which also have the role of the user.
    """

    place: Place
    run_id: str
    parts: list[tuple[Role, str]]
    calls: list[Call]
    notes: list[tuple[Role, str]] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return any(_is_open(call) for call in self.calls)


def thread_history(run: Run) -> Iterator[tuple[Role, str]]:
    """Yield the history for the model, as (role, blocks as a JSON array).

    The history contains the thread up to and including `run`. A turn with open calls ends it: the
    driver that finishes the calls appends their results. Omits refused messages and replies, and
    the thoughts of earlier epochs, because models bind them to their prompt. The thread's last
    compaction replaces the start of the history, whose rows are not read, and can shorten texts of
    the turns after it.
    """
    return history_since(latest_compaction(run.thread_id), run)


def history_since(shorter: Compaction | None, run: Run) -> Iterator[tuple[Role, str]]:
    """Yield `thread_history`. `shorter` is the thread's last compaction, None if it has none."""
    if shorter is not None and shorter.opening:
        yield "user", dump([{"type": "text", "text": shorter.opening}])
    start = (0, 0) if shorter is None else (shorter.from_run, shorter.from_turn)
    for said in thread_turns(run, start):
        if shorter is not None:
            clip_turn(shorter, said)
        yield from said.parts
        if said.is_open:
            continue  # the notes of this turn follow its results: see `late_notes`
        if said.calls:
            yield "user", results_json(said.calls)
        yield from said.notes


def late_notes(run: Run, calls: Sequence[Call]) -> list[str]:
    """Return the notes after the results of a turn with the open `calls`, each a JSON array."""
    if not calls or not MachineSettings.now().pins_threads:
        return []  # only moved files cause a note in the middle of a turn
    rows = Message.objects.filter(run=run, turn=calls[0].turn, role=MessageRole.USER)
    return list(rows.order_by("position").values_list("content", flat=True))


def text_of(said: Said) -> str:
    """Return the text of a person's message, its blocks joined by blank lines."""
    blocks = json.loads(said.parts[0][1])
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")


def latest_compaction(thread_id: str) -> Compaction | None:
    return Compaction.objects.filter(thread_id=thread_id).order_by("-number").first()


def clip_turn(shorter: Compaction, said: Said) -> int:
    """Shorten a turn in place, as the compaction requires. Return the number of changed texts."""
    limit = limit_at(shorter, said.place)
    if limit is None:
        return 0
    path = shorter.message_files.get(str(said.place[0])) if said.place[1] == 0 else None
    note = f"; the whole message is in {path}" if path else ""
    count = 0
    for index, (role, content) in enumerate(said.parts):
        content, cut = clip_blocks(content, limit, note)
        said.parts[index] = (role, content)
        count += cut
    for call in said.calls:
        result = clip_result(call.result, limit) if call.result else ""
        count += result != call.result
        call.result = result
    for index, (role, content) in enumerate(said.notes):
        content, cut = clip_blocks(content, limit)
        said.notes[index] = (role, content)
        count += cut
    return count


def limit_at(shorter: Compaction, place: Place) -> int | None:
    """Return the size in bytes to which the compaction cuts each text of the turn at `place`.

    Old turns are cut more than later ones. Returns None if the compaction does not cut this turn.
    """
    if place < (shorter.clip_run, shorter.clip_turn):
        return shorter.clip_bytes
    return shorter.kept_bytes if place < (shorter.until_run, shorter.until_turn) else None


def thread_turns(run: Run, start: Place) -> Iterator[Said]:
    """Yield the turns of the thread from `start` to `run`. A turn with open calls is the last one.

    Messages that no model may receive, refused replies and empty ones are omitted.
    """
    first_run, first_turn = start
    members = list(
        Run.objects.filter(thread_id=run.thread_id, number__gte=first_run, number__lte=run.number)
        .exclude(message_refused=True)
        .defer("structured_output", "output_schema")
    )
    numbers = {member.pk: member.number for member in members}
    notes = {member.pk: member.opening_note for member in members if member.opening_note}
    attached = {member.pk: member.attachments for member in members if member.attachments}
    before = Q(run__number=first_run, turn__lt=first_turn)
    messages = list(Message.objects.filter(run__in=numbers).exclude(before))
    messages.sort(key=lambda message: (numbers[message.run_id], message.turn, message.position))
    replies = any(message.role == MessageRole.ASSISTANT for message in messages)
    of_this_epoch = _of_this_epoch(run, members) if replies else None
    calls: dict[tuple[str, int], list[Call]] = defaultdict(list)
    if replies:  # calls are stored together with their reply
        rows = ToolCall.objects.filter(run__in=numbers).exclude(before)
        for row in rows.order_by("turn", "position"):
            calls[row.run_id, row.turn].append(call_from_row(row))
    said: Said | None = None
    for message in messages:
        role: Role = "user" if message.role == MessageRole.USER else "assistant"
        place = (numbers[message.run_id], message.turn)
        content = message.content
        if of_this_epoch is not None and role == "assistant" and not of_this_epoch(*place):
            content = _without_thoughts(content)
        if content == "[]" or message.stop_reason in BAD_ENDINGS:
            continue  # models refuse an empty message, and must not get a refused one
        if role == "user" and message.turn and said is not None and said.place == place:
            said.notes.append((role, content))
            continue
        if said is not None:
            yield said
        if said is not None and said.is_open:
            return
        said = Said(place, message.run_id, [(role, content)], [])
        if message.turn == 0 and message.run_id in attached:
            said.parts.append(("user", attached[message.run_id]))
        if message.turn == 0 and message.run_id in notes:
            note = dump([{"type": "text", "text": notes[message.run_id]}])
            said.parts.append(("user", note))
        if role == "assistant":
            said.calls = calls.get((message.run_id, message.turn), [])
    if said is not None:
        yield said


def last_usage(run: Run, epoch: Epoch) -> Usage | None:
    """Return the usage of the thread's last reply in this epoch.

    None before the first reply, and for an epoch whose start is not recorded.
    """
    if epoch.first_run is None:
        return None
    row = (
        Message.objects.filter(run__thread_id=run.thread_id, role=MessageRole.ASSISTANT)
        .filter(run__number__lte=run.number, run__number__gte=epoch.first_run)
        .exclude(run__number=epoch.first_run, turn__lt=epoch.first_turn)
        .exclude(stop_reason__in=BAD_ENDINGS)
        .exclude(content="[]")
        .order_by("-run__number", "-turn")
        .only("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        .first()
    )
    if row is None:
        return None
    return Usage(row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens)


def _of_this_epoch(run: Run, members: list[Run]) -> Callable[[int, int], bool]:
    """Return a function that says whether a reply belongs to the present epoch.

    Its arguments are the run's number and the turn.
    """
    epoch = Epoch.objects.filter(thread_id=run.thread_id).order_by("-number").first()
    if epoch is not None and epoch.first_run is not None:
        first = (epoch.first_run, epoch.first_turn)
        return lambda number, turn: (number, turn) >= first
    same: set[int] = set()  # for an epoch without a recorded start
    for member in sorted(members, key=lambda member: member.number, reverse=True):
        if member.agent_version_id != run.agent_version_id:
            break
        same.add(member.number)
    return lambda number, turn: number in same


def _without_thoughts(content: str) -> str:
    if 'thinking"' not in content:  # thinking and redacted_thinking
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
    """Return the calls of the run's last turn if one of them is open, otherwise an empty list."""
    last = ToolCall.objects.filter(run=run).order_by("-turn").values_list("turn", flat=True).first()
    if last is None:
        return []
    calls = calls_of_turn(run, last)
    return calls if any(_is_open(call) for call in calls) else []


def calls_of_turn(run: Run, turn: int) -> list[Call]:
    rows = ToolCall.objects.filter(run=run, turn=turn).order_by("position")
    return [call_from_row(row) for row in rows]
