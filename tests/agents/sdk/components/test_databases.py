"""Databases of an agent in a program."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents.sdk.conftest import MakeAgent
from vel import RunInterrupted

INSERT = {"query": "INSERT INTO sales VALUES (7)", "database": "shop"}


@pytest.mark.slow
def test_a_program_can_let_its_agent_ask_to_write(make_agent: MakeAgent, tmp_path: Path) -> None:
    file = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(file)) as shop, shop:
        shop.execute("CREATE TABLE sales (amount INTEGER)")
    agent = make_agent(
        [{"tool_calls": [("execute_sql", INSERT)]}, "Written."],
        databases={"shop": f"sqlite:///{file}"},
        database_read_only=False,
    )

    def amounts() -> list[tuple[int]]:
        with closing(sqlite3.connect(file)) as shop:
            return shop.execute("SELECT amount FROM sales").fetchall()

    async def use() -> None:
        with pytest.raises(RunInterrupted, match="execute_sql"):
            await agent.run("Add a sale", "s")
        assert amounts() == []
        async for _ in agent.resume("s"):
            pass

    asyncio.run(use())
    assert amounts() == [(7,)]
