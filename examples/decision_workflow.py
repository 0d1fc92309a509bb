"""A tool call that requires approval: you approve, edit or reject it before the agent continues.

The run is stored while it waits. With `persistence_path` the program can end now, and another
program continues the run with `agent.resume(session_id)`. Set `DECISION` to y, n or an amount to
answer without a terminal.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

from vel import StreamEvent, create_deep_agent, scripted_model, tool

SCRIPT: list[dict[str, Any] | str] = [
    {
        "text": "The offer fits the need and the budget, so I order it.",
        "tool_calls": [("place_order", {"vendor": "Acme", "amount": 12000})],
    },
    "I have carried out your decision.",
]


@tool(requires_approval=True)
def place_order(vendor: str, amount: int) -> dict[str, Any]:
    """Order from a vendor.

    Args:
        vendor: Its name
        amount: Euros, in all
    """
    return {"vendor": vendor, "amount": amount, "order": "A-17"}


def ask(question: str) -> str:
    if "DECISION" in os.environ:
        return os.environ["DECISION"]
    return input(question) if sys.stdin.isatty() else "n"


async def show(events: AsyncIterator[StreamEvent]) -> None:
    async for event in events:
        if event.type == "token":
            print(event.content, end="", flush=True)
        elif event.type == "tool_result":
            print(f"\n[{event.metadata['tool_name']}] {event.content}")
        elif event.type == "cancelled":
            print("\nNothing was ordered.")


async def main() -> None:
    key = os.environ.get("ANTHROPIC_API_KEY")
    agent = create_deep_agent(
        model={"provider": "anthropic"} if key else scripted_model(SCRIPT),
        tools=[place_order],
        sandbox=False,
        system_prompt="You prepare purchases. Weigh the options, say why, then place the order.",
    )
    async with agent:
        await show(agent.run_stream("We need 12 desks for at most 15,000 euros.", "purchase-1"))
        for question in await agent.pending("purchase-1"):
            print(f"\n\n{question.metadata['tool_name']}: {question.metadata['input']}")
            answer = ask("Approve? [y, n, or another amount] ")
            if answer == "y":
                await show(agent.resume("purchase-1"))
            elif answer.isdigit():
                await show(agent.resume("purchase-1", modified_state={"amount": int(answer)}))
            else:
                await show(agent.reject("purchase-1", reason="Too expensive"))
    print()


if __name__ == "__main__":
    asyncio.run(main())
