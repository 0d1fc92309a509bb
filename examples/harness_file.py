"""A harness from a YAML file: agent types, a skill of the project, approvals and AI SDK parts."""

import asyncio
import os
from pathlib import Path
from typing import Any

from vel import AgentConfig, HarnessConfig, VelHarness, scripted_model

HARNESS = """\
name: desk
systemPrompt: You check the texts of our desk.
maxTurns: 40
sandbox: false
skillDirs: [./desk-skills]
interruptOn: {write_file: true}
customAgents:
  checker: {tools: [read_file, grep], maxTurns: 10, systemPromptAddition: "Name the line."}
"""
SKILL = "---\nname: desk-rules\ndescription: Rules of the desk.\n---\nReports have a title.\n"


def script(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
    """Return the offline script. Subagents play it with their own messages."""
    task = messages[0]["content"][0]["text"]
    turn = sum(message["role"] == "assistant" for message in messages)
    if task.startswith("Check"):
        return f"{task}: no problems"
    if turn == 0:
        tasks = [
            {"subagent": "checker", "task": "Check A"},
            {"subagent": "lawyer", "task": "Check B"},
        ]
        return {
            "tool_calls": [
                ("load_skill", {"skill_name": "desk-rules"}),
                ("parallel_tasks", {"tasks": tasks}),
            ]
        }
    if turn == 1:
        return {
            "tool_calls": [("write_file", {"path": "/report.md", "content": "# Report\nFine.\n"})]
        }
    return "The report is in /report.md."


async def main() -> None:
    skill = Path("desk-skills/desk-rules/SKILL.md")
    skill.parent.mkdir(parents=True, exist_ok=True)
    skill.write_text(SKILL)
    file = Path("harness.yaml")
    file.write_text(HARNESS)

    key = os.environ.get("ANTHROPIC_API_KEY")
    model = {"provider": "anthropic"} if key else scripted_model(script)
    harness = VelHarness(HarnessConfig.from_file(file), model=model)
    harness.register_agent("lawyer", AgentConfig(["read_file"], description="Checks contracts."))
    print("Types:", ", ".join(harness.list_agent_types()))
    async with harness:
        async for part in harness.run_stream("Let A and B be checked. Write a report.", "desk"):
            if part["type"] in ("tool-output-available", "tool-approval-request"):
                print(part["type"], str(part.get("output", ""))[:100])
        async for part in harness.resume("desk", True):
            if part["type"] == "text-delta":
                print(part["delta"], end="")
        print()
        print(list(harness.get_state("desk")["filesystem"]["files"]))


if __name__ == "__main__":
    asyncio.run(main())
