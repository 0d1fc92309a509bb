"""The minimal loop with the SDK: stream, run the tool, repeat. It stores nothing."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import anthropic
from protocol import NOTES, limited, measured, serve

MODEL = "claude-sonnet-5-5"
TOOL = "read_notes"
TOOLS: list[Any] = [
    {
        "name": TOOL,
        "description": "Show your notes.",
        "input_schema": {"type": "object", "properties": {}},
    }
]


class BareLoop:
    """Conversations that share one client and one event loop."""

    def __init__(self, base_url: str) -> None:
        self._runner = asyncio.Runner()
        self._base_url = base_url
        self._client: anthropic.AsyncAnthropic | None = None

    def run(self, message: str) -> dict[str, Any]:
        """Run one conversation until its answer."""
        return self.run_many([message])

    def run_many(self, messages: list[str], at_once: int = 0) -> dict[str, Any]:
        """Run conversations until their answers: `at_once` at the same time, or all if it is 0."""
        figures: dict[str, Any] = {}
        with measured(figures):
            counts = self._runner.run(self._all(messages, at_once))
        return {**figures, "calls": sum(counts)}

    async def _all(self, messages: list[str], at_once: int) -> list[int]:
        if self._client is None:
            # Vel does not let the SDK retry either. All conversations get a connection.
            self._client = anthropic.AsyncAnthropic(
                api_key="none", base_url=self._base_url, max_retries=0
            )
        return await limited(map(self._converse, messages), at_once)

    async def _converse(self, message: str) -> int:
        assert self._client is not None
        messages: list[Any] = [{"role": "user", "content": message}]
        calls = 0
        while True:
            calls += 1
            async with self._client.messages.stream(
                model=MODEL, max_tokens=16_000, messages=messages, tools=TOOLS
            ) as stream:
                async for _ in stream.text_stream:
                    pass
                reply = await stream.get_final_message()
            messages.append({"role": "assistant", "content": reply.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": NOTES}
                for block in reply.content
                if block.type == "tool_use"
            ]
            if not results:
                return calls
            messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    bare = BareLoop(parser.parse_args().base_url)
    serve({"run": bare.run, "run_many": bare.run_many})
