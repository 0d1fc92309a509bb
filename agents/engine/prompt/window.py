"""The context window of a model, and the share of it for prompts."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from agents.engine.prompt.reply_limits import MOST_TOKENS
from agents.kernel.window import Window
from agents.providers.base import Provider, ProviderError
from agents.providers.prices import compact_at, known_limits
from agents.settings import ContextSettings
from agents.spec import AgentSpec

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
    """Return the longest prompt, in tokens."""
    if window.compact_at is None:
        return window.room
    return min(window.room, int(window.compact_at / ContextSettings.now().COMPACT_AT))


async def window_of(provider: Provider, spec: AgentSpec) -> Window:
    """Return the limits of the agent's model.

    They come from an earlier error of the server, else from the data file, the server, or the
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
    """Return a limit that a server reports, or None if it is not possible."""
    return tokens if type(tokens) is int and 0 < tokens <= MOST_TOKENS else None


def note_overflow(provider: Provider, model: str, error: ProviderError) -> None:
    """Store the window that an error names, in this process. Tiny windows are ignored."""
    for pattern in _MAXIMUM:
        found = pattern.search(error.message)
        if found is not None and int(found[1]) >= MIN_WINDOW:
            _from_errors.setdefault(provider, {})[model] = int(found[1])
            return
