"""A program with many public names, for type checkers. It is not run."""

from __future__ import annotations

import asyncio
from typing import Any

from vel import (
    AgentConfig,
    AgentRegistry,
    BaseMiddleware,
    BubblewrapSandbox,
    CompositeBackend,
    DatabaseBackend,
    DatabaseMiddleware,
    DeepAgent,
    DeepAgentConfig,
    FilesystemMiddleware,
    HarnessConfig,
    HumanInTheLoopMiddleware,
    ModelConfig,
    PlanningMiddleware,
    RunFailed,
    RunInterrupted,
    SandboxFilesystemBackend,
    SetupError,
    Skill,
    SkillRegistry,
    SkillsMiddleware,
    StateFilesystemBackend,
    StreamEvent,
    StreamMode,
    SubagentConfig,
    SubagentMiddleware,
    SubagentSpawner,
    ToolContext,
    ToolSpec,
    VelHarness,
    create_coding_harness,
    create_database_tools,
    create_deep_agent,
    create_harness,
    create_sandbox,
    load_skill,
    load_skills_from_directory,
    scripted_model,
    tool,
)


@tool(effect="read", timeout=10)
async def stock(item: str, context: ToolContext) -> int:
    """How many there are."""
    context.progress("counting")
    return len(item)


@tool
def twice(number: int) -> int:
    """Double."""
    return number * 2


def plain(number: int) -> int:
    """Double."""
    return number * 2


class Basket(BaseMiddleware):
    name = "basket"

    def __init__(self) -> None:
        self.items: list[str] = []

    def get_tools(self) -> list[ToolSpec]:
        return [ToolSpec.from_function(self.add_item)]

    def get_system_prompt_segment(self) -> str:
        return "## Basket"

    def get_state(self) -> dict[str, Any]:
        return {"items": self.items}

    def load_state(self, state: dict[str, Any]) -> None:
        self.items = list(state["items"])

    def add_item(self, name: str) -> int:
        """Put something into the basket."""
        self.items.append(name)
        return len(self.items)


async def main() -> None:
    model = scripted_model([{"tool_calls": [("ls", {})]}, "done"], "x")
    also = scripted_model(["done"])
    agent: DeepAgent = create_deep_agent(
        model=model,
        tools=[stock, twice, plain],
        middleware=[Basket(), PlanningMiddleware(), HumanInTheLoopMiddleware({"execute": True})],
        subagents=[SubagentConfig("market", "Markets", tools=["ls", plain])],
        interrupt_on={"execute": {"allowed_decisions": ["approve"]}},
        databases={"shop": "sqlite:///shop.sqlite3"},
    )
    async with agent:
        try:
            answer = await agent.run("Go", session_id="s", context={"a": 1})
            print(answer)
        except RunInterrupted as waiting:
            print(waiting.session_id, waiting.interrupts)
            print(await agent.resume(waiting.session_id, True))
        except RunFailed as failed:
            print(failed.code)
        async for event in agent.run_stream("Go", mode=StreamMode.EVENTS):
            assert isinstance(event, StreamEvent)
            print(event.type, event.content)
        async for item in agent.resume("s"):
            print(item)
        state: dict[str, Any] = agent.get_state("s")
        agent.load_state(state)
        for file in await agent.files():
            print(file.host_path)
    harness = VelHarness(
        HarnessConfig(model=ModelConfig("scripted", "x"), custom_agents={"a": AgentConfig(["ls"])})
    )
    parts = [part async for part in harness.run_stream("Go")]
    print(parts, harness.list_agent_types())
    create_harness({"max_turns": 3}, sandbox=False)
    create_coding_harness("./project", config=HarnessConfig(model=also))
    registry = AgentRegistry({"a": {"tools": ["ls"]}})
    spawner = SubagentSpawner(registry, model, max_concurrent=2)
    result = await spawner.spawn("Look", "explore")
    print(result.status, result.result)
    files = CompositeBackend(StateFilesystemBackend(), {"/m": StateFilesystemBackend()})
    print(files.ls("/")["entries"], FilesystemMiddleware(files).read_file("/a"))
    sandbox = create_sandbox("./w", allowed_paths=["/usr/share"], timeout=5)
    print(sandbox.execute("true").success, BubblewrapSandbox("./w").execute_python("1").stdout)
    own = SandboxFilesystemBackend("./w", network=True)
    print(own.execute("true")["stdout"])
    backend = DatabaseBackend({"shop": "sqlite:///shop.sqlite3"}, query_timeout=3)
    found = await backend.execute("select 1", params={"a": 1})
    print(found.rows, found.to_markdown_table(), create_database_tools(backend)[0].name)
    DatabaseMiddleware(backend)
    skills = SkillRegistry(skill_dirs=["./skills"])
    best: Skill | None = skills.find_skill("report")
    print(best, skills.skills, SkillsMiddleware(["./skills"]).list_skills())
    print(load_skill("./skills/a").get_full_context(), load_skills_from_directory("./skills"))
    part = SubagentMiddleware(model, subagents=[SubagentConfig("w", "writes")])
    print(await part.task("w", "write"))
    try:
        DeepAgent(DeepAgentConfig(max_steps=3))
    except SetupError as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main())
