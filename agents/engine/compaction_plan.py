"""What of a conversation stays, what is cut and what is left out, so that it fits again.

Turns are never torn: a reply stays with the results of its calls, or both go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine.clipping import clip_blocks, clip_result
from agents.engine.history import Place, Said, result_block
from agents.engine.token_count import estimate_blocks
from agents.engine.window import BYTES_PER_TOKEN
from agents.settings import ContextSettings

HARDER = 0.6
"""Each further try leaves so much of the room of the one before."""
MIN_BYTES = 200
MAX_CLIP_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens. `fixed` is the prompt with its tools, `free` what a conversation may have then."""

    usable: int
    fixed: int
    hardness: int = 0

    @property
    def free(self) -> int:
        return max(0, int((self.usable - self.fixed) * HARDER**self.hardness))

    def share(self, part: float) -> int:
        return int(self.free * part)

    def share_bytes(self, part: float) -> int:
        return max(MIN_BYTES, self.share(part) * BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Plan:
    """The last `kept` turns stay, with texts of `kept_bytes` at most, and have `kept_tokens`.

    The ones before are cut to `clip_bytes`, or, with `summarise`, left out. `clipped` texts
    become shorter.
    """

    kept: int
    kept_bytes: int
    kept_tokens: int
    clip_bytes: int
    clipped_tokens: int
    clipped: int
    summarise: bool


def make_plan(turns: Sequence[Said], room: Room, opening: int) -> Plan:
    """`opening` is what an earlier summary takes, in tokens, if nothing is summarised now."""
    recent = room.share(ContextSettings.now().KEEP_RECENT)
    kept, kept_bytes, kept_tokens, kept_cut = _recent(turns, recent, room)
    older = turns[: len(turns) - kept]
    clip_bytes = max(MIN_BYTES, min(MAX_CLIP_BYTES, recent * BYTES_PER_TOKEN // 10))
    clip_bytes = min(clip_bytes, kept_bytes)
    goal = room.fixed + room.share(1) * ContextSettings.now().CLIP_TO
    after = room.fixed + opening + kept_tokens
    clipped = kept_cut
    for said in older:
        tokens, cut = turn_tokens(said, clip_bytes)
        after += tokens
        clipped += cut
        if after > goal:
            break
    summarise = bool(older) and after > goal
    return Plan(
        kept, kept_bytes, kept_tokens, clip_bytes, after, kept_cut if summarise else clipped,
        summarise,
    )  # fmt: skip


def _recent(turns: Sequence[Said], budget: int, room: Room) -> tuple[int, int, int, int]:
    """How many of the last turns fit into `budget`, cut as little as lets one of them fit."""
    limit = room.share_bytes(ContextSettings.now().KEEP_RECENT / 2)
    while turns and limit > MIN_BYTES and turn_tokens(turns[-1], limit)[0] > budget:
        limit = max(MIN_BYTES, limit // 2)
    count = total = clipped = 0
    for said in reversed(turns):
        tokens, cut = turn_tokens(said, limit)
        if total + tokens > budget:
            break
        count, total, clipped = count + 1, total + tokens, clipped + cut
    return count, limit, total, clipped


def turn_tokens(said: Said, limit: int) -> tuple[int, int]:
    """The estimated tokens of a turn whose texts are cut to `limit`, and how many are."""
    tokens = sum(estimate_blocks(content) for _, content in said.notes)
    cuts = 0
    for _, content in said.parts:
        content, cut = clip_blocks(content, limit)
        tokens += estimate_blocks(content)
        cuts += cut
    for call in said.calls:
        result = clip_result(call.result, limit) if call.result else ""
        tokens += estimate_blocks(result_block(call.call_id, result or '""', is_error=True))
        cuts += result != call.result
    return tokens, cuts


def place_after(turns: Sequence[Said], kept: int, end: Place) -> Place:
    """Where the last `kept` turns begin; `end` when there are none."""
    return turns[-kept].place if kept else end
