"""Decide the requests of an agent and its subagent: edit one, reject one, approve one."""

import asyncio
import os
from typing import Any

from vel import RunInterrupted, SubagentConfig, create_deep_agent, scripted_model, tool

ordered: list[str] = []


@tool(requires_approval=True)
def order(item: str, amount: int = 1) -> str:
    """Order something.

    Args:
        item: Name of the item
        amount: Number of items
    """
    ordered.append(f"{amount} {item}")
    return f"{amount} {item} will come."


def script(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
    """Return the next reply of the offline model. The agent and its subagent both use it."""
    task = messages[0]["content"][0]["text"]
    if any(message["role"] == "assistant" for message in messages):
        return "Ordered." if task.startswith("Drinks") else "All orders are decided."
    if task.startswith("Drinks"):
        return {"tool_calls": [("order", {"item": "tea", "amount": 30})]}
    return {
        "tool_calls": [
            ("order", {"item": "bread"}),
            ("order", {"item": "cake", "amount": 50}),
            ("task", {"subagent": "buyer", "task": "Drinks for three people"}),
        ]
    }


def decide(given: dict[str, Any]) -> dict[str, Any] | bool | str:
    """Return a decision: a dictionary edits the call, a text rejects it, True approves it."""
    if given["item"] == "tea" and given["amount"] > 3:
        return {"amount": 3}
    return "That is too much." if given.get("amount", 1) > 10 else True


async def main() -> None:
    key = os.environ.get("ANTHROPIC_API_KEY")
    agent = create_deep_agent(
        model={"provider": "anthropic"} if key else scripted_model(script),
        tools=[order],
        subagents=[SubagentConfig("buyer", "Buys drinks", tools=["order"])],
        sandbox=False,
    )
    async with agent:
        answer = None
        try:
            answer = await agent.run("Order bread, cake and drinks for three people", "party")
        except RunInterrupted:
            pass
        while answer is None:
            decisions = {}
            for request in await agent.pending("party"):
                given = request.metadata["input"]
                print(f"{request.node_id} asks: {given}")
                decisions[request.metadata["approval_id"]] = decide(given)
            try:
                answer = await agent.resume("party", decisions)
            except RunInterrupted:
                print("more questions")  # others are asked again after each order
        print(answer)
    print(ordered)


if __name__ == "__main__":
    asyncio.run(main())
