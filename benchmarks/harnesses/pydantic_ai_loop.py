"""pydantic-ai with its Anthropic model and streaming. It stores nothing: that is up to its user."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from anthropic import AsyncAnthropic
from protocol import NOTES, limited, measured, serve
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.usage import UsageLimits

MODEL = "claude-sonnet-5-5"


class PydanticAI:
    """One agent on one event loop."""

    def __init__(self, base_url: str) -> None:
        self._runner = asyncio.Runner()
        self._base_url = base_url
        self._agent: Agent[None, str] | None = None

    def run_many(self, messages: list[str], at_once: int = 0) -> dict[str, Any]:
        """Run conversations until their answers: `at_once` at the same time, or all if it is 0."""
        figures: dict[str, Any] = {}
        with measured(figures):
            counts = self._runner.run(self._all(messages, at_once))
        return {**figures, "calls": sum(counts)}

    async def _all(self, messages: list[str], at_once: int) -> list[int]:
        if self._agent is None:
            client = AsyncAnthropic(api_key="none", base_url=self._base_url, max_retries=0)
            provider = AnthropicProvider(anthropic_client=client)
            self._agent = Agent(AnthropicModel(MODEL, provider=provider))
            self._agent.tool_plain(read_notes)
        return await limited(map(self._converse, messages), at_once)

    async def _converse(self, message: str) -> int:
        assert self._agent is not None
        limits = UsageLimits(request_limit=None)
        async with self._agent.iter(message, usage_limits=limits) as run:
            async for node in run:
                if Agent.is_model_request_node(node):
                    async with node.stream(run.ctx) as stream:
                        async for _ in stream:
                            pass
            usage = run.usage
            return int((usage() if callable(usage) else usage).requests)


def read_notes() -> str:
    """Show your notes."""
    return NOTES


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    agents = PydanticAI(parser.parse_args().base_url)
    serve({"run_many": agents.run_many})
