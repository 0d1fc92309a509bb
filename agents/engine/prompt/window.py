"""The context window of a model, and the part of it that a prompt may use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from agents.kernel.window import Window
from agents.providers.base import Block, PartDelta, PartStarted, Provider, ProviderError, Reply
from agents.providers.prices import compact_at, known_limits
from agents.settings import ContextSettings
from agents.spec import AgentSpec
from agents.structured_output.levels import MOST_LEVELS, nests_too_deep

OUTPUT_SHARE = 4
"""A reply can take at most a fourth of the window, even if the agent allows more."""
MIN_WINDOW = 1_000
BYTES_PER_TOKEN = 3

_MAXIMUM = (
    re.compile(r"> (\d{1,12})(?!\d)"),
    re.compile(r"tokens allowed \(?(\d{1,12})(?!\d)"),
    re.compile(r"context (?:length|window|size|limit)\D{0,30}?(\d{3,12})(?!\d)", re.IGNORECASE),
)
"""For example `prompt is too long: 208310 tokens > 200000 maximum`.

The last two are for Google, llama.cpp and vLLM.
"""

_from_errors: WeakKeyDictionary[Provider, dict[str, int]] = WeakKeyDictionary()
"""Windows by model, from errors of servers, which are more reliable than any table."""


def usable_tokens(window: Window) -> int:
    """Return the number of tokens that a prompt may have."""
    if window.compact_at is None:
        return window.room
    return min(window.room, int(window.compact_at / ContextSettings.now().COMPACT_AT))


async def window_of(provider: Provider, spec: AgentSpec) -> Window:
    """Return the context window and the output limit of the agent's model.

    The source is an earlier error of the provider, else the data file, the provider, or the
    setting.
    """
    limits = known_limits(spec.model)
    if limits.context_window is None:
        limits = await provider.limits(spec.model)
    from_error = _from_errors.get(provider, {}).get(spec.model)
    size = from_error or _believed(limits.context_window) or ContextSettings.now().CONTEXT_WINDOW
    output = min(spec.max_output_tokens, max(1, size // OUTPUT_SHARE))
    if (longest := _believed(limits.max_output)) is not None:
        output = min(output, longest)
    return Window(size, output, compact_at(spec.model))


def _believed(tokens: object) -> int | None:
    """Return a limit that a provider reports, or None if the value makes no sense."""
    return tokens if type(tokens) is int and 0 < tokens <= MOST_TOKENS else None


def note_overflow(provider: Provider, model: str, error: ProviderError) -> None:
    """Remember the context window that an error names, in this process.

    Values that are too small for any model are ignored.
    """
    for pattern in _MAXIMUM:
        found = pattern.search(error.message)
        if found is not None and int(found[1]) >= MIN_WINDOW:
            _from_errors.setdefault(provider, {})[model] = int(found[1])
            return


MOST_BYTES = 4_000_000
"""The limit of one reply in UTF-8, including thoughts and tool inputs. The longest have about a
million."""
MOST_VALUES = 60_000
"""The limit of fields and items in the inputs of one reply. Each takes a hundred bytes of memory,
and again in each copy; no model's longest reply can contain this number."""
MOST_PARTS = 1_000
"""The limit of texts, thoughts and calls."""
MOST_TOKENS = 1_000_000_000
LONGEST_WORD = 200
"""The limit of the model's name in its row."""
LONGEST_REASON = 50


@dataclass(slots=True)
class ReplyLimits:
    """Limits of a streamed reply: the number of its parts, and their total size in bytes.

    `count` raises `ProviderError` above a limit; the call is then not tried again.
    """

    parts: int = 0
    size: int = 0

    def count(self, event: PartStarted | PartDelta) -> None:
        if isinstance(event, PartStarted):
            self.parts += 1
        else:
            self.size += len(event.text.encode("utf-8", "replace"))
        if self.parts > MOST_PARTS:
            raise _unusable(f"it has over {MOST_PARTS:,} parts")
        if self.size > MOST_BYTES:
            raise _unusable(f"it has over {MOST_BYTES:,} bytes")


def check_reply(reply: Reply) -> None:
    """Raise `ProviderError` for a reply that cannot be stored.

    It has impossible token counts, too many parts, calls whose inputs are too large or nested too
    deep, or names that do not fit into rows. A negative count would reduce the use that other calls
    have caused.
    """
    usage = reply.usage
    figures = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
    if not all(type(figure) is int and 0 <= figure <= MOST_TOKENS for figure in figures):
        raise _unusable("its figures of tokens are no counts")
    if len(reply.blocks) > MOST_PARTS:
        raise _unusable(f"it has over {MOST_PARTS:,} parts")
    if _values(reply.blocks) > MOST_VALUES:
        raise _unusable(f"the inputs of its calls have over {MOST_VALUES:,} fields and items")
    if any(nests_too_deep(block.get("input")) for block in reply.blocks):
        raise _unusable(f"the input of a call nests deeper than {MOST_LEVELS} levels")
    for word, longest in ((reply.model, LONGEST_WORD), (reply.stop_reason, LONGEST_REASON)):
        if not isinstance(word, str) or len(word) > longest or not word.isprintable():
            raise _unusable("its model or the reason why it stops is no name")


def _values(blocks: Sequence[Block]) -> int:
    """Return how many fields and items the inputs of calls have, or a number over the limit."""
    count = 0
    todo: list[object] = [block.get("input") for block in blocks]
    while todo and count <= MOST_VALUES:
        value = todo.pop()
        if isinstance(value, dict | list):
            count += len(value)
            todo.extend(value.values() if isinstance(value, dict) else value)
    return count


def _unusable(reason: str) -> ProviderError:
    return ProviderError(f"The model's reply cannot be used: {reason}.", code="malformed_stream")
