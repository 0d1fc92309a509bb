"""deepagents with its SQLite saver and streaming, set up as in its documentation."""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import uuid
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from langchain_anthropic import ChatAnthropic
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from protocol import NOTES, limited, measured, serve

MODEL = "claude-sonnet-5-5"


def read_notes() -> str:
    """Show your notes."""
    return NOTES


class DeepAgents:
    """One agent with one database file, on one event loop."""

    def __init__(self, base_url: str, directory: Path) -> None:
        self._runner = asyncio.Runner()
        self._database = directory / "checkpoints.sqlite3"
        self._runner.run(self._open(base_url))

    async def _open(self, base_url: str) -> None:
        saver = AsyncSqliteSaver.from_conn_string(str(self._database))
        self._saver = saver  # closes the connection when the stack is garbage-collected
        model = ChatAnthropic(
            model=MODEL,
            max_tokens=16_000,
            base_url=base_url,
            api_key="none",
            max_retries=0,
            streaming=True,
        )
        self._agent = create_deep_agent(
            model, tools=[read_notes], checkpointer=await saver.__aenter__()
        )

    def run(self, message: str) -> dict[str, Any]:
        """Run one conversation until its answer."""
        return self.run_many([message])

    def run_many(self, messages: list[str], at_once: int = 0) -> dict[str, Any]:
        """Run conversations until their answers: `at_once` at the same time, or all if it is 0."""
        figures: dict[str, Any] = {}
        before = self._bytes()
        with measured(figures):
            counts = self._runner.run(self._all(messages, at_once))
        return {**figures, "calls": sum(counts), "db_bytes": self._bytes() - before}

    async def _all(self, messages: list[str], at_once: int) -> list[int]:
        return await limited(map(self._converse, messages), at_once)

    async def _converse(self, message: str) -> int:
        state = await self._agent.ainvoke(
            {"messages": [{"role": "user", "content": message}]},
            config={"configurable": {"thread_id": uuid.uuid4().hex}, "recursion_limit": 100_000},
        )
        return sum(item.type == "ai" for item in state["messages"])

    def _bytes(self) -> int:
        """Return the size of the database after a checkpoint of its write-ahead log."""
        connection = sqlite3.connect(self._database)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            pages, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "page_size")
            )
            return int(pages * size)
        finally:
            connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    agents = DeepAgents(options.base_url, options.directory)
    serve({"run": agents.run, "run_many": agents.run_many})
