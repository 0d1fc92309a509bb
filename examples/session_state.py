"""Store the state of a session as JSON, with your own middleware's state, and restore it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from vel import BaseMiddleware, PlanningMiddleware, SetupError, create_deep_agent, scripted_model

SCRIPT: list[dict[str, Any] | str] = [
    {"tool_calls": [("write_todos", {"completed": ["todo_0"]}), ("add_item", {"name": "tea"})]},
    {"tool_calls": [("write_file", {"path": "/list.md", "content": "tea\n"})]},
    "The list is in /list.md.",
]


class Basket(BaseMiddleware):
    """Keeps items of a session. It adds a tool and a part of the prompt."""

    def __init__(self) -> None:
        self.items: list[str] = []

    def get_tools(self) -> list[Any]:
        return [self.add_item]

    def get_system_prompt_segment(self) -> str:
        return "## Basket\nCollect with `add_item`."

    def get_state(self) -> dict[str, Any]:
        return {"items": self.items}

    def load_state(self, state: dict[str, Any]) -> None:
        self.items = list(state["items"])

    def add_item(self, name: str) -> int:
        """Put something into the basket."""
        self.items.append(name)
        return len(self.items)


async def main() -> None:
    planning = PlanningMiddleware()
    planning.todo_list.add("Write the list")
    planning.todo_list.add("Shop")
    key = os.environ.get("ANTHROPIC_API_KEY")
    agent = create_deep_agent(
        model={"provider": "anthropic"} if key else scripted_model(SCRIPT),
        middleware=[Basket(), planning],
        sandbox=False,
    )
    async with agent:
        print(await agent.run("We need tea. Write a list.", "monday"))
        print(planning.todo_list.to_markdown())
        file = Path("state.json")
        file.write_text(json.dumps(agent.get_state("monday")))

        state = json.loads(file.read_text())
        agent.load_state(state, "tuesday")
        copy = agent.get_state("tuesday")
        print("equal:", {**copy, "session_id": "monday"} == state)
        print(await agent.run("Once more", "tuesday"))
        print(agent.get_state("tuesday")["middleware"])
        try:
            agent.load_state({"planning": {"todos": [{"status": "done"}]}}, "tuesday")
        except SetupError as error:
            print("refused:", error)


if __name__ == "__main__":
    asyncio.run(main())
