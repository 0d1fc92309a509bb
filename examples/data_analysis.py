"""An agent that queries a database, calculates in the sandbox and writes a report.

It first creates a small SQLite database to analyse. The agent can only read it: the database
refuses all other statements.
"""

import asyncio
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from vel import create_deep_agent, scripted_model

QUERY = "SELECT month, source, count(*) AS signups FROM signups GROUP BY month, source"
CODE = """
rows = {"2026-01": 2, "2026-02": 3}
growth = (rows["2026-02"] - rows["2026-01"]) / rows["2026-01"]
open("/sandbox/outputs/report.md", "w").write(f"# Signups\\n\\nGrowth: {growth:.0%}\\n")
print(f"growth {growth:.0%}")
"""
SCRIPT: list[dict[str, Any] | str] = [
    {"text": "First the tables.", "tool_calls": [("list_tables", {})]},
    {"text": "Now the signups.", "tool_calls": [("execute_sql", {"query": QUERY})]},
    {"text": "I compute the growth.", "tool_calls": [("execute_python", {"code": CODE})]},
    "Signups grew by 50% in February; the report is in /sandbox/outputs/report.md.",
]


def make_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS signups (month TEXT, source TEXT)")
        connection.execute("DELETE FROM signups")
        connection.executemany(
            "INSERT INTO signups VALUES (?, ?)",
            [("2026-01", "web"), ("2026-01", "ads")] + [("2026-02", "web")] * 3,
        )


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory) / "analytics.sqlite3"
        make_database(database)
        key = os.environ.get("ANTHROPIC_API_KEY")
        agent = create_deep_agent(
            model={"provider": "anthropic"} if key else scripted_model(SCRIPT),
            databases={"analytics": f"sqlite:///{database}"},
            sandbox_working_dir="./workspace",  # the agent's working directory
            outputs_dir="./outputs",  # here you find the files from /sandbox/outputs
        )
        async with agent:
            async for event in agent.run_stream(
                "How did our signups grow, by month and source? Write a report."
            ):
                if event.type == "token":
                    print(event.content, end="", flush=True)
                elif event.type == "tool_call":
                    print(f"\n[{event.metadata['tool_name']}]")
                elif event.type == "tool_result":
                    print(event.content)
                elif event.type == "artifact":
                    print(f"\n[file] {event.metadata['host_path']}")
            for file in await agent.files():
                if file.host_path is not None:
                    print("\n" + Path(file.host_path).read_text())


if __name__ == "__main__":
    asyncio.run(main())
