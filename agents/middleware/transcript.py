"""Search in a conversation of which the model no longer gets all turns."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, Field

from agents.middleware.base import Middleware, Tool, ToolResult
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.selectors.transcript import search_thread
from agents.spec import AgentSpec


class SearchTranscriptInput(BaseModel):
    query: str = Field(min_length=1, max_length=500)
    limit: int = Field(default=10, ge=1, le=20)


async def search_transcript(context: ToolContext, given: SearchTranscriptInput) -> ToolResult:
    found = await context.in_database(search_thread, context.thread_id, given.query, given.limit)
    if not found:
        return ToolResult("Nothing in the transcript has all these words: try fewer, or others.")
    return ToolResult({"matches": [asdict(item) for item in found]})


class TranscriptMiddleware(Middleware):
    """Offers `search_transcript` in conversations that compaction has shortened."""

    name = "transcript"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        return [
            Tool(
                "search_transcript",
                "Find earlier messages, calls and results of this conversation that have all words "
                "of query, also those that were left out or cut.",
                SearchTranscriptInput,
                search_transcript,
                Effect.READ,
            )
        ]
