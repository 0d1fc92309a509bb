"""Agent types: built-in ones, your own, and a program that starts them."""

import asyncio
import os
from typing import Any

from vel import (
    AgentConfig,
    AgentRegistry,
    SubagentSpawner,
    create_research_harness,
    scripted_model,
)


def script(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
    """Return the offline script of the model."""
    asked = messages[0]["content"][0]["text"]
    if asked.startswith("Check"):
        return "Two of the three sources agree."
    if any(message["role"] == "assistant" for message in messages):
        return "Two of three sources agree, so I would rely on it."
    call = ("task", {"subagent": "fact-checker", "task": "Check the claim in three sources"})
    return {"text": "I let it be checked.", "tool_calls": [call]}


async def main() -> None:
    key = os.environ.get("ANTHROPIC_API_KEY")
    model = {"provider": "anthropic"} if key else scripted_model(script)
    checker = AgentConfig(
        tools=["read_file", "ls", "grep"],
        max_turns=20,
        description="Checks claims against sources",
        system_prompt_addition="You check claims: name a source for each finding.",
    )

    # One agent that decides when to delegate.
    harness = create_research_harness(model=model, sandbox=False)
    harness.register_agent("fact-checker", checker)
    async with harness:
        print("Types:", ", ".join(harness.list_agent_types()))
        print(await harness.run("Is the claim in our press release right?"))

    # The program can also delegate: here two tasks at the same time.
    registry = AgentRegistry({"fact-checker": checker})
    spawner = SubagentSpawner(registry, model, max_concurrent=2, sandbox_enabled=False)
    results = await asyncio.gather(
        spawner.spawn("Check the first claim", "fact-checker"),
        spawner.spawn("Check the second claim", "fact-checker"),
    )
    for result in results:
        print(f"{result.task}: {result.status}: {result.result}")
    await spawner.close()


if __name__ == "__main__":
    asyncio.run(main())
