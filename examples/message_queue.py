"""A queued message, a guardrail, and a budget that a person raises."""

import asyncio
import os
from typing import Any

from agents.features.guardrails.public import Decision, Guardrail, allow, block
from vel import Conflict, RunFailed, RunInterrupted, ToolContext, create_deep_agent, scripted_model


class NoExport(Guardrail):
    """Blocks messages that ask for an export of customers."""

    name = "no-export"
    description = "Blocks exports"

    def check_input(self, context: Any, text: str) -> Decision:
        return block("it asks for an export") if "export" in text.lower() else allow()


started = asyncio.Event()
may_end = asyncio.Event()


async def look_up(what: str, context: ToolContext) -> str:
    """Look something up."""
    context.progress("asking the archive")
    started.set()
    await may_end.wait()
    return f"{what} is known"


def script(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
    """Return the offline script: a call, and an answer to the newest message."""
    newest = messages[-1]["content"]
    if newest[0]["type"] == "tool_result":
        return f"{newest[0]['content']}."
    return {"tool_calls": [("look_up", {"what": newest[-1]["text"]})]}


async def main() -> None:
    key = os.environ.get("ANTHROPIC_API_KEY")
    agent = create_deep_agent(
        model={"provider": "anthropic"} if key else scripted_model(script),
        tools=[look_up],
        guardrails=[NoExport],
        max_tokens=1000,
        sandbox=False,
    )
    async with agent:
        first = asyncio.create_task(agent.run("Alpha", "desk"))
        await started.wait()
        try:
            await agent.run("Beta", "desk")
        except Conflict as error:
            print("refused:", error.code)
        second = asyncio.create_task(agent.run("Beta", "desk", queue=True))
        may_end.set()
        for task in (first, second):
            try:
                print(await task)
            except RunInterrupted:
                (request,) = await agent.pending("desk")
                print("asked:", request.metadata["kind"])
                print(await agent.resume("desk", {"more_tokens": 100_000}))
        try:
            await agent.run("Export all customers", "desk")
        except RunFailed as error:
            print("failed:", error.code)


if __name__ == "__main__":
    asyncio.run(main())
