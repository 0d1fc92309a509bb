"""Detect that a run repeats itself.

The state in a driver's memory is derived from the rows of the last turns, so another driver reaches
the same result in the same turn. A turn is compared with all its calls; different calls, or
different results of the same calls, are progress. Polling tools are ignored.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from agents.engine.prompt.history import call_from_row
from agents.events.append import EventDraft
from agents.features.guardrails.events import GuardStuck
from agents.features.guardrails.options import RetryOptions
from agents.features.guardrails.settings import GuardSettings
from agents.kernel.middleware import Ending, LoadContext, ReplyDecision, RunContext, Tell
from agents.kernel.park import End
from agents.kernel.tool_calls import Call
from agents.middleware.base import Middleware
from agents.models import Message, MessageRole, ToolCall
from agents.providers.base import Reply

STUCK = "stuck"
"""`Message.author` of the notes about it, and the error code of runs that end for it."""
POLLING = frozenset({"read_todos", "wait_subagent"})
"""Polling tools, which normally return the same answer repeatedly."""
_CANONICAL_BYTES = 20_000
"""Longer inputs are compared without normalisation."""
_FILE = re.compile(r"-[0-9a-f]{24}\.txt")
"""The end of the name of a file with a long result, which differs for each call."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn's calls for comparison, within this process only. `errors` are of failed calls."""

    whole: int
    errors: frozenset[int]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stuck:
    """A repetition. `strike` is 1 for a note to the model, 2 if it continued as before."""

    kind: str
    count: int
    strike: int
    tools: tuple[str, ...]


def turn_of(calls: Iterable[Call]) -> Turn | None:
    """Return the turn for comparison, or None if it has only calls of polling tools."""
    whole: list[int] = []
    errors: list[int] = []
    tools: list[str] = []
    for call in calls:
        if call.tool in POLLING:
            continue
        result = _FILE.sub("", call.result.replace(call.call_id, "")) or call.status
        whole.append(hash((call.tool, _canonical(call.input), result)))
        tools.append(call.tool)
        if call.is_error:
            errors.append(hash((call.tool, call.code, result)))
    if not whole:
        return None
    return Turn(hash(tuple(whole)), frozenset(errors), tuple(dict.fromkeys(tools)))


def _canonical(text: str) -> str:
    """Return an input with its keys in a fixed order."""
    return text if len(text) > _CANONICAL_BYTES else json.dumps(json.loads(text), sort_keys=True)


def find_stuck(turns: Sequence[Turn], repeats: int) -> Stuck | None:
    """Return the repetition that the last turn completes, if any.

    `turns` are the last `window(repeats)`.

    A repetition is found when it has happened `repeats` times, and again at twice as many, but not
    in between or later.
    """
    last = turns[-1]
    for error in last.errors:
        count = _streak(turn.errors >= {error} for turn in reversed(turns))
        if found := _strike("same_error", count, repeats, last.tools):
            return found
    count = _streak(turn.whole == last.whole for turn in reversed(turns))
    if count > 1 or len(turns) < 2:
        return _strike("same_call", count, repeats, last.tools)
    pair = (last.whole, turns[-2].whole)
    length = _streak(turn.whole == pair[place % 2] for place, turn in enumerate(reversed(turns)))
    if length % 2:
        return None
    tools = tuple(dict.fromkeys(turns[-2].tools + last.tools))
    return _strike("ping_pong", length // 2, repeats, tools)


def window(repeats: int) -> int:
    """Return how many turns are necessary: twice `repeats` pairs, and the turn before them."""
    return 4 * repeats + 1


def _streak(fits: Iterable[bool]) -> int:
    count = 0
    for fit in fits:
        if not fit:
            break
        count += 1
    return count


def _strike(kind: str, count: int, repeats: int, tools: tuple[str, ...]) -> Stuck | None:
    if count not in (repeats, 2 * repeats):
        return None
    return Stuck(kind, count, count // repeats, tools)


class Progress:
    """The last turns of one run in its driver's memory."""

    def __init__(self) -> None:
        self.repeats = GuardSettings.now().STUCK_REPEATS
        self.turns: deque[Turn] = deque(maxlen=window(self.repeats))
        self.knows = False
        """Whether the rows were read."""
        self.seen = 0
        """The last turn whose calls are in `turns` or were ignored."""

    def add(self, calls: Sequence[Call]) -> bool:
        """Add the calls of a turn that has ended. Return whether `turns` has changed."""
        if not calls or calls[0].turn == self.seen:
            return False
        self.seen = calls[0].turn
        turn = turn_of(calls)
        if turn is not None:
            self.turns.append(turn)
        return turn is not None


class StuckMiddleware(Middleware):
    """Adds a note that the model repeats itself, or ends the run."""

    name = STUCK

    def load(self, context: LoadContext) -> Progress | None:
        progress = Progress()
        return progress if progress.repeats else None

    async def before_model(self, run: RunContext) -> Tell | End | None:
        """Check the last turn. It reads rows only the first time in a claim."""
        progress = run.state(Progress)
        is_first, progress.knows = not progress.knows, True
        if is_first and run.turn:
            progress.turns.extend(await run.in_database(_read, run.row.pk, progress.repeats))
            progress.seen = run.turn
            is_new = bool(progress.turns)
        else:
            is_new = progress.add(run.calls)
        found = find_stuck(progress.turns, progress.repeats) if is_new else None
        if found is None:
            return None
        if is_first and await run.in_database(_is_told, run.row.pk, run.turn):
            return None  # an earlier driver has added the note
        what = _what(found)
        if found.strike == 2 and _ends_run(run):
            message = f"The agent stayed stuck after a note: it has made {what}."
            return End(STUCK, message, [_event(found.kind, found.count, "end")])
        text = (
            f"You have made {what}. Repeating it will not change that. Think about why, then do "
            "something else; if you cannot, explain to the user why you are blocked. If you wait "
            "for something, wait longer in one call."
        )
        return Tell(text, [_event(found.kind, found.count, "note")])

    async def after_model(self, run: RunContext, ending: Ending) -> ReplyDecision | None:
        """Ask the model again after a reply without text and calls.

        After `STUCK_REPEATS` such replies in a row, the run fails with the code `stuck`. If
        `on_stuck` is not "end", the run completes with the empty reply instead.
        """
        reply = ending.reply
        if not ending.ends or reply.stop_reason != "end_turn" or _has_words(reply):
            return None
        repeats = run.state(Progress).repeats
        count = 1 + await run.in_database(_empty_before, run.row.pk, repeats)
        # APIs may refuse a message that ends in thoughts.
        stored = replace(reply, blocks=[])
        if count < repeats:
            note = "Your reply was empty. Continue the task, or, if it is done, say so to the user."
            events = [_event("empty_reply", count, "note")]
            return ReplyDecision(note=note, reply=stored, events=events)
        if not _ends_run(run):
            return None
        message = f"The model's replies were empty {count} times in a row."
        end = End(STUCK, message, [_event("empty_reply", count, "end")])
        return ReplyDecision(end=end, reply=stored)


def _ends_run(run: RunContext) -> bool:
    return run.spec.option(RetryOptions).on_stuck == "end"


def _has_words(reply: Reply) -> bool:
    return any(block["type"] == "text" and block["text"].strip() for block in reply.blocks)


def _empty_before(run_id: str, limit: int) -> int:
    """Return how many of the run's latest replies, up to `limit`, were empty."""
    latest = (
        Message.objects.filter(run=run_id, role=MessageRole.ASSISTANT)
        .order_by("-turn")
        .values_list("content", flat=True)[:limit]
    )
    count = 0
    for content in latest:
        if content != "[]":
            break
        count += 1
    return count


def _read(run_id: str, repeats: int) -> list[Turn]:
    """Return the last turns of a run whose calls have all ended, oldest first."""
    calls = ToolCall.objects.filter(run=run_id).exclude(tool__in=POLLING)
    numbers = calls.order_by("-turn").values_list("turn", flat=True).distinct()[: window(repeats)]
    rows = calls.filter(turn__in=list(numbers)).order_by("turn", "position")
    turns = [
        turn_of(map(call_from_row, of_turn))
        for _, of_turn in groupby(rows.iterator(chunk_size=20), key=lambda row: row.turn)
    ]
    return [turn for turn in turns if turn is not None]


def _is_told(run_id: str, turn: int) -> bool:
    # Earlier releases stored no author.
    mine = Message.objects.filter(run=run_id, turn=turn, author__in=(STUCK, ""))
    return mine.filter(role=MessageRole.USER).exists()


def _event(kind: str, count: int, action: str) -> EventDraft:
    return GuardStuck(kind=kind, count=count, action=action)


def _what(found: Stuck) -> str:
    tools = " and ".join(found.tools[:4])
    if found.kind == "same_error":
        return f"calls with the same error {found.count} times in a row ({tools})"
    if found.kind == "ping_pong":
        return f"the same two steps in turn {found.count} times, with the same results ({tools})"
    return f"the same call with the same result {found.count} times in a row ({tools})"
