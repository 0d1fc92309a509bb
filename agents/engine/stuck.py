"""Seeing that a run repeats itself.

Derived from the journal: what a driver holds in memory is what the rows of the last turns say, so
that another driver comes to the same finding at the same turn. A turn counts with all its calls;
different calls, or different results of the same calls, are progress. Tools that are there to ask
again count for nothing.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from agents.engine.history import call_from_row
from agents.engine.journal import write_events
from agents.engine.journal_rows import Call
from agents.engine.notes import note_json, write_note
from agents.engine.result_files import without_paths
from agents.engine.session import Session
from agents.events.append import EventDraft
from agents.events.catalogue.guardrails import GuardStuck
from agents.models import Message, MessageRole, ToolCall
from agents.settings import GuardSettings

STUCK = "stuck"
"""`Message.author` of the notes about it."""
POLLING = frozenset({"read_todos", "wait_subagent"})
"""Tools whose same answer to the same question is no sign of anything."""
_CANONICAL_BYTES = 20_000
"""Longer inputs are compared as they were written."""
_CALLS_READ = 200
"""Calls that a new driver looks back at, at most."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn's calls for comparing, within this process only. `errors`: of those that failed."""

    whole: int
    errors: frozenset[int]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stuck:
    """`strike` is 1 where the model should be told, 2 where it went on as before."""

    kind: str
    count: int
    strike: int
    tools: tuple[str, ...]


def turn_of(calls: Iterable[Call]) -> Turn | None:
    """None for a turn that counts for nothing."""
    whole: list[int] = []
    errors: list[int] = []
    tools: list[str] = []
    for call in calls:
        if call.tool in POLLING:
            continue
        # A file that a long result went to is named after its call.
        result = without_paths(call.result.replace(call.call_id, "")) or call.status
        whole.append(hash((call.tool, _canonical(call.input), result)))
        tools.append(call.tool)
        if call.is_error:
            errors.append(hash((call.tool, call.code, result)))
    if not whole:
        return None
    return Turn(hash(tuple(whole)), frozenset(errors), tuple(dict.fromkeys(tools)))


def _canonical(text: str) -> str:
    """An input whatever the order of its keys."""
    return text if len(text) > _CANONICAL_BYTES else json.dumps(json.loads(text), sort_keys=True)


def find_stuck(turns: Sequence[Turn], repeats: int) -> Stuck | None:
    """What the last turn makes of those before it; they are needed `window(repeats)` back.

    Something is found in the turn in which it has happened `repeats` times, and once more when it
    has happened twice as often; not in the turns between, nor after.
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
    """So many turns tell: twice `repeats` pairs, and the one that shows that there are no more."""
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
    """The last turns of one run, as its driver holds them."""

    def __init__(self) -> None:
        self._repeats = GuardSettings.now().STUCK_REPEATS
        self._turns: deque[Turn] = deque(maxlen=window(self._repeats))
        self._knows = False
        self._is_new = False

    def add(self, calls: Iterable[Call]) -> None:
        """The calls of a turn that has ended."""
        if self._repeats and self._knows and (turn := turn_of(calls)) is not None:
            self._turns.append(turn)
            self._is_new = True

    async def look(self, session: Session) -> tuple[str, str] | None:
        """Tell the model if the run has got stuck; the (code, message) if it must end for that.

        To be called before each model call. Only the first time it may read rows.
        """
        is_first, self._knows = not self._knows, True
        if is_first and self._repeats and session.turn:
            self._turns.extend(await session.database.run(_read, session.run.pk, self._repeats))
            self._is_new = bool(self._turns)
        if not self._is_new:
            return None
        self._is_new = False
        found = find_stuck(self._turns, self._repeats)
        if found is None:
            return None
        if is_first and await session.database.run(_is_told, session.run.pk, session.turn):
            return None  # an earlier driver did it
        return await _act(session, found)


def _read(run_id: str, repeats: int) -> list[Turn]:
    """The last turns of a run whose calls have all ended, oldest first."""
    rows = (
        ToolCall.objects.filter(run=run_id)
        .exclude(tool__in=POLLING)
        .order_by("-turn", "-position")[:_CALLS_READ]
    )
    turns: list[Turn] = []
    for _, calls in groupby(rows.iterator(chunk_size=20), key=lambda row: row.turn):
        found = turn_of(reversed([call_from_row(row) for row in calls]))
        if found is not None:
            turns.append(found)
        if len(turns) == window(repeats):
            break
    return turns[::-1]


def _is_told(run_id: str, turn: int) -> bool:
    # Earlier releases stored no author.
    mine = Message.objects.filter(run=run_id, turn=turn, author__in=(STUCK, ""))
    return mine.filter(role=MessageRole.USER).exists()


async def _act(session: Session, found: Stuck) -> tuple[str, str] | None:
    ends = found.strike == 2 and session.spec.on_stuck == "end"
    drafts = [stuck_event(found.kind, found.count, "end" if ends else "note")]
    what = _what(found)
    if ends:
        await session.database.share(write_events, session.writer, drafts)
        return "stuck", f"The agent was stuck and was told so: it has made {what}."
    content = note_json(
        f"You have made {what}. Doing it once more will not change that. Think about why, then do "
        "something else; if there is nothing else, tell the user what keeps you from going on. If "
        "you wait for something, wait longer in one call."
    )
    note = (session.writer, session.turn, content, drafts, STUCK)
    await session.database.share(write_note, *note)
    session.say("user", content)
    return None


def stuck_event(kind: str, count: int, action: str) -> EventDraft:
    return GuardStuck(kind=kind, count=count, action=action)


def _what(found: Stuck) -> str:
    tools = " and ".join(found.tools[:4])
    if found.kind == "same_error":
        return f"calls with the same error {found.count} times in a row ({tools})"
    if found.kind == "ping_pong":
        return f"the same two steps in turn {found.count} times, with the same results ({tools})"
    return f"the same call with the same result {found.count} times in a row ({tools})"
