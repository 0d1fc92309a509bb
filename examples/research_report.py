"""Two specialists that study a question at the same time, and an agent that writes the report."""

import asyncio
import os
from typing import Any

from vel import SubagentConfig, create_deep_agent, scripted_model

REPORT = (
    "# Agent frameworks\n\n## Market\nMany small ones.\n\n## Technology\nDurable runs matter.\n"
)


def script(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
    """Return the offline script of the model. Every agent plays it with its own messages."""
    asked = messages[0]["content"][0]["text"]
    if asked.startswith("Market"):
        return "Many small frameworks, few with users."
    if asked.startswith("Technology"):
        return "Durable runs are the main difference."
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn == 0:
        tasks = [
            {"subagent": "market-researcher", "task": "Market of agent frameworks"},
            {"subagent": "tech-researcher", "task": "Technology of agent frameworks"},
        ]
        return {"text": "I ask both.", "tool_calls": [("parallel_tasks", {"tasks": tasks})]}
    if turn == 1:
        return {"tool_calls": [("write_file", {"path": "/report.md", "content": REPORT})]}
    return "The report is in /report.md."


async def main() -> None:
    key = os.environ.get("ANTHROPIC_API_KEY")
    agent = create_deep_agent(
        model={"provider": "anthropic"} if key else scripted_model(script),
        sandbox=False,
        subagents=[
            SubagentConfig(
                name="market-researcher",
                description="Knows markets and competitors",
                system_prompt="You research markets: size, trends, who competes.",
            ),
            SubagentConfig(
                name="tech-researcher",
                description="Knows architectures and their costs",
                system_prompt="You research technology: architectures and their costs.",
            ),
        ],
    )
    async with agent:
        async for event in agent.run_stream(
            "Compare the market and the technology of AI agent frameworks. Write /report.md."
        ):
            if event.type == "token":
                print(event.content, end="", flush=True)
            elif event.type in ("subagent_start", "subagent_end"):
                print(f"\n[{event.metadata['subagent']}] {event.type}")
        print()


if __name__ == "__main__":
    asyncio.run(main())
