"""Your own skill: a directory with a SKILL.md, which the agent loads when it fits the task."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

from vel import SkillRegistry, create_deep_agent, scripted_model

SKILL = """\
---
name: house-style
description: How our letters to customers are written
tags: [letters, customers]
triggers: ["letter*"]
---
Start with the customer's name. Write at most three sentences. End with "Yours, the desk".
"""
LETTER = "Ms Byron, your desk is on its way. It arrives on Friday. Yours, the desk\n"
SCRIPT: list[dict[str, Any] | str] = [
    {"text": "There is a skill for that.", "tool_calls": [("load_skill", {"name": "house-style"})]},
    {"tool_calls": [("write_file", {"path": "/letter.txt", "content": LETTER})]},
    "The letter is in /letter.txt.",
]


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        skill = Path(directory) / "house-style"
        skill.mkdir()
        (skill / "SKILL.md").write_text(SKILL)

        # You can also inspect skills without an agent.
        found = SkillRegistry([directory], include_builtin=False).find_skill("write to customers")
        print("Found:", found.name if found else None)

        key = os.environ.get("ANTHROPIC_API_KEY")
        agent = create_deep_agent(
            model={"provider": "anthropic"} if key else scripted_model(SCRIPT),
            skill_dirs=[directory],
            include_builtin_skills=False,
            sandbox=False,
        )
        async with agent:
            async for event in agent.run_stream("Write the letter to Ms Byron about her desk."):
                if event.type == "token":
                    print(event.content, end="", flush=True)
                elif event.type == "tool_call":
                    print(f"\n[{event.metadata['tool_name']}]")
            print()


if __name__ == "__main__":
    asyncio.run(main())
