"""A tool with results of any requested length."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel

from agents.middleware import registry
from agents.middleware.base import Middleware, Tool, ToolResult
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.spec import AgentSpec


class FetchInput(BaseModel):
    size: int
    mark: str = ""
    error: bool = False


async def fetch(context: ToolContext, given: FetchInput) -> ToolResult:
    line = f"{given.mark} and some more words of a long line, {given.size} in all.\n"
    text = (line * (given.size // len(line) + 1))[: given.size]
    middle = len(text) // 2
    secret = f"\nNEEDLE-{given.mark}\n"
    return ToolResult(text[:middle] + secret + text[middle:], is_error=given.error)


class LongResults(Middleware):
    name = "long results"
    profiles = frozenset({"full", "sandbox_only"})

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        return [Tool("fetch", "Fetch a text.", FetchInput, fetch, Effect.READ)]


@contextmanager
def long_results() -> Iterator[None]:
    """Give agents the tool `fetch(size, mark)` during the block."""
    before = registry.installed_middleware
    registry.installed_middleware = lambda: (*before(), LongResults())  # type: ignore[assignment]
    registry._toolset.cache_clear()
    registry.built_in_tools.cache_clear()
    try:
        yield
    finally:
        registry.installed_middleware = before
        registry._toolset.cache_clear()
        registry.built_in_tools.cache_clear()
