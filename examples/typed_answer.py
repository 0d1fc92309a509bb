"""An answer as an object, from a database. With a guardrail, hooks, retries and variables."""

import asyncio
import os
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from agents.features.guardrails.public import Decision, Guardrail, Hooks, allow, replace
from vel import DatabaseBackend, DatabaseMiddleware, create_deep_agent, scripted_model

QUERY = "SELECT customer, sum(total) AS total FROM orders GROUP BY customer"


class Total(BaseModel):
    """The total of all orders."""

    total: Decimal = Field(ge=0)
    currency: Literal["EUR", "USD"]
    note: str = ""


class NoCustomers(Guardrail):
    """Masks customers' names in results."""

    name = "no-customers"
    description = "Masks the names of customers"

    def check_tool_result(self, context: Any, tool: str, given: Any, text: str) -> Decision:
        return replace(text.replace("Ada", "***")) if "Ada" in text else allow()


class Audit(Hooks):
    """Prints each call."""

    def after_tool(self, context: Any, call_id: str, tool: str, text: str, is_error: bool) -> None:
        print(f"[{tool}] {'failed' if is_error else text}")


def script(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
    """Return the offline script: a query, an invalid answer, and a valid one."""
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn == 0:
        return {"tool_calls": [("execute_sql", {"query": QUERY})]}
    return "It is 30.50 EUR." if turn == 1 else '{"total": 30.50, "currency": "EUR"}'


async def main() -> None:
    place = Path("orders.sqlite3")
    place.unlink(missing_ok=True)
    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE orders (customer TEXT, total NUMERIC)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [("Ada", 10.5), ("Bo", 20)])
    backend = DatabaseBackend({"shop": f"sqlite:///{place.resolve()}"})
    key = os.environ.get("ANTHROPIC_API_KEY")
    agent = create_deep_agent(
        model={"provider": "anthropic"} if key else scripted_model(script),
        output_schema=Total,
        system_prompt="You answer in {{context.currency}}.",
        middleware=[DatabaseMiddleware(backend)],
        guardrails=[NoCustomers],
        hooks=[Audit],
        tool_retries=[{"tool": "execute_sql", "attempts": 3}],
        sandbox=False,
    )
    async with agent:
        answer = await agent.run("What is the total of our orders?", context={"currency": "EUR"})
        print(type(answer).__name__, answer.total, answer.currency)
    found = await backend.execute(
        "SELECT count(*) AS n FROM orders WHERE total > :least", "shop", {"least": 15}
    )
    print(found.rows)
    await backend.close()


if __name__ == "__main__":
    asyncio.run(main())
