"""The plan of a compaction: turns to keep, to cut, and to replace by a summary.

A turn is never split: a reply stays with the results of its calls, or both are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.engine.prompt.conversation import clip_blocks, clip_result
from agents.engine.prompt.history import Place, Said, result_block
from agents.engine.prompt.token_count import estimate_blocks
from agents.engine.prompt.window import BYTES_PER_TOKEN
from agents.settings import ContextSettings

HARDER = 0.6
"""The part of the room that each attempt leaves of the one before."""
LEAST_BESIDE = 0.05
"""The part of the room that the conversation needs in addition to a long message."""
MIN_BYTES = 200
MAX_CLIP_BYTES = 2_000
"""The shortest and the longest limit for a text in an older turn."""


@dataclass(frozen=True, slots=True)
class Room:
    """The room for a conversation, in tokens."""

    usable: int
    """The longest prompt."""
    fixed: int
    """The system prompt and the tools."""
    hardness: int = 0
    """The number of attempts before this one."""

    @property
    def free(self) -> int:
        """The longest conversation."""
        return max(0, int((self.usable - self.fixed) * HARDER**self.hardness))

    def share(self, part: float) -> int:
        """Return the fraction `part` of `free`, in tokens."""
        return int(self.free * part)

    def share_bytes(self, part: float) -> int:
        """Return the fraction `part` of `free`, in bytes, at least `MIN_BYTES`."""
        return max(MIN_BYTES, self.share(part) * BYTES_PER_TOKEN)


def room_beside(newest: Said | None, room: Room, threshold: int) -> Room:
    """Return the room that `newest`, uncut, leaves for the rest of the conversation.

    The prompt stays below `threshold` if possible.
    """
    if newest is None:
        return room
    fixed = room.fixed + turn_tokens(newest, sys.maxsize)[0]
    below = Room(threshold, fixed, room.hardness)
    return below if below.share(1) >= room.share(LEAST_BESIDE) else replace(room, fixed=fixed)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a conversation is made shorter."""

    kept: int
    """The number of last turns that stay."""
    kept_bytes: int
    """The longest text in them."""
    kept_tokens: int
    clip_bytes: int
    """The longest text in the turns before them."""
    clipped_tokens: int
    """Tokens of the prompt if the older turns are cut."""
    clipped: int
    """The number of texts that become shorter."""
    summarizes: bool
    """A summary replaces the older turns, because cutting them is not enough."""


def make_plan(turns: Sequence[Said], room: Room, opening: int) -> Plan:
    """Plan how `turns` are made shorter.

    `opening` is the tokens of an earlier summary, which stays if there is no new one.
    """
    recent = room.share(ContextSettings.now().KEEP_RECENT)
    kept, kept_bytes, kept_tokens, kept_cut = _recent(turns, recent, room)
    older = turns[: len(turns) - kept]
    clip_bytes = max(MIN_BYTES, min(MAX_CLIP_BYTES, recent * BYTES_PER_TOKEN // 10))
    clip_bytes = min(clip_bytes, kept_bytes)
    goal = room.fixed + room.share(1) * ContextSettings.now().CLIP_TO
    after = room.fixed + opening + kept_tokens
    clipped = kept_cut
    for turn in older:
        tokens, cut = turn_tokens(turn, clip_bytes)
        after += tokens
        clipped += cut
        if after > goal:
            break
    summarizes = bool(older) and after > goal
    return Plan(
        kept=kept,
        kept_bytes=kept_bytes,
        kept_tokens=kept_tokens,
        clip_bytes=clip_bytes,
        clipped_tokens=after,
        clipped=kept_cut if summarizes else clipped,
        summarizes=summarizes,
    )


def summary_of_all(turns: Sequence[Said], room: Room, opening: int) -> Plan:
    """Plan a summary that replaces all `turns`, also if they fit."""
    plan = make_plan(turns, room, opening)
    return replace(plan, kept=0, kept_tokens=0, clipped=0, summarizes=bool(turns))


def _recent(turns: Sequence[Said], budget: int, room: Room) -> tuple[int, int, int, int]:
    """Return how many of the last turns fit into `budget` tokens.

    Also the longest text in bytes, the tokens of these turns, and how many texts are cut. The limit
    for a text is the largest with which at least one turn fits.
    """
    limit = room.share_bytes(ContextSettings.now().KEEP_RECENT / 2)
    while turns and limit > MIN_BYTES and turn_tokens(turns[-1], limit)[0] > budget:
        limit = max(MIN_BYTES, limit // 2)
    count = total = clipped = 0
    for turn in reversed(turns):
        tokens, cut = turn_tokens(turn, limit)
        if total + tokens > budget:
            break
        count, total, clipped = count + 1, total + tokens, clipped + cut
    return count, limit, total, clipped


def turn_tokens(turn: Said, limit: int) -> tuple[int, int]:
    """Return the estimated tokens of a turn with texts of at most `limit` bytes.

    Also how many blocks and results are shortened.
    """
    tokens = cuts = 0
    for _, content in [*turn.parts, *turn.notes]:
        content, cut = clip_blocks(content, limit)
        tokens += estimate_blocks(content)
        cuts += cut
    for call in turn.calls:
        result = clip_result(call.result, limit) if call.result else ""
        tokens += estimate_blocks(result_block(call.call_id, result or '""', is_error=True))
        cuts += result != call.result
    return tokens, cuts


def place_after(turns: Sequence[Said], kept: int, end: Place) -> Place:
    """Return the place of the first of the last `kept` turns; `end` if `kept` is 0."""
    return turns[-kept].place if kept else end
