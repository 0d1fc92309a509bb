"""How much a model takes: its window, and what of it a conversation may fill."""

from __future__ import annotations

import re
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from agents.engine.reply_limits import MOST_TOKENS
from agents.providers.base import Provider, ProviderError
from agents.providers.prices import compact_at, known_limits
from agents.settings import ContextSettings
from agents.spec import AgentSpec

OUTPUT_SHARE = 4
"""A reply may take the fourth part of a window at most, whatever the agent says."""
MIN_WINDOW = 1_000
BYTES_PER_TOKEN = 3
EVICT_SHARE = 10
"""One result may take the tenth part of what a conversation may fill."""
WHOLE_SHARE = 4
"""What is asked for as a whole, and is bounded by itself, may take the fourth part."""
MIN_RESULT_BYTES = 1_000

_MAXIMUM = (
    re.compile(r"> (\d{1,12})(?!\d)"),
    re.compile(r"tokens allowed \(?(\d{1,12})(?!\d)"),
    re.compile(r"context (?:length|window|size|limit)\D{0,30}?(\d{3,12})(?!\d)", re.IGNORECASE),
)
"""As in `prompt is too long: 208310 tokens > 200000 maximum`.

Then the words of Google, llama.cpp and vLLM.
"""

_told: WeakKeyDictionary[Provider, dict[str, int]] = WeakKeyDictionary()
"""Windows that servers have told in errors: they know better than any table."""


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens. `size` holds the prompt and the reply, `output` is the longest reply.

    `compact_at`: a longer prompt is shortened, whatever else there would be room for.
    """

    size: int
    output: int
    compact_at: int | None = None

    @property
    def usable(self) -> int:
        """What the prompt may take."""
        room = self.size - self.output
        if self.compact_at is None:
            return room
        return min(room, int(self.compact_at / ContextSettings.now().COMPACT_AT))

    @property
    def threshold(self) -> int:
        """A longer prompt is shortened before it is sent."""
        return int(self.usable * ContextSettings.now().COMPACT_AT)

    @property
    def result_bytes(self) -> int:
        """The longest result of a tool that goes to the model as it is."""
        share = self.usable * BYTES_PER_TOKEN // EVICT_SHARE
        return max(MIN_RESULT_BYTES, min(ContextSettings.now().EVICT_BYTES, share))

    @property
    def whole_bytes(self) -> int:
        """The longest result of a tool that is whole (`Tool.is_whole`)."""
        return max(MIN_RESULT_BYTES, self.usable * BYTES_PER_TOKEN // WHOLE_SHARE)


async def window_of(provider: Provider, spec: AgentSpec) -> Window:
    """From what the server told in an error, the data file, the server, or the setting."""
    limits = known_limits(spec.model)
    if limits.context_window is None:
        limits = await provider.limits(spec.model)
    told = _told.get(provider, {}).get(spec.model)
    size = told or _believed(limits.context_window) or ContextSettings.now().CONTEXT_WINDOW
    output = min(spec.max_output_tokens, max(1, size // OUTPUT_SHARE))
    if (longest := _believed(limits.max_output)) is not None:
        output = min(output, longest)
    return Window(size, output, compact_at(spec.model))


def _believed(tokens: object) -> int | None:
    """What a server tells of itself, if that can be."""
    return tokens if type(tokens) is int and 0 < tokens <= MOST_TOKENS else None


def note_overflow(provider: Provider, model: str, error: ProviderError) -> None:
    """Remember the window that an error names, for this process. Nonsense is not believed."""
    for pattern in _MAXIMUM:
        found = pattern.search(error.message)
        if found is not None and int(found[1]) >= MIN_WINDOW:
            _told.setdefault(provider, {})[model] = int(found[1])
            return
