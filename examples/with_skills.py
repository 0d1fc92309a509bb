"""List the built-in skills, and use one."""

import asyncio
import os
from typing import Any

from vel import HarnessConfig, SkillsRegistry, VelHarness, scripted_model

SCRIPT: list[dict[str, Any] | str] = [
    {"text": "I load the skill.", "tool_calls": [("load_skill", {"name": "decision-workflow"})]},
    "I would take the second offer: it costs less over three years.",
]


async def main() -> None:
    for skill in SkillsRegistry().list_skills():
        print(f"- {skill['name']}: {skill['description'].split('.')[0]}")
    key = os.environ.get("ANTHROPIC_API_KEY")
    config = HarnessConfig(
        model={"provider": "anthropic"} if key else scripted_model(SCRIPT),
        skill_dirs=["./skills"],  # your own skills, if you have any
        sandbox=False,
    )
    async with VelHarness(config) as harness:
        async for part in harness.run_stream("Which of the two offers should we take?"):
            if part["type"] == "text-delta":
                print(part["delta"], end="", flush=True)
            elif part["type"] == "tool-input-available":
                print(f"\n[{part['toolName']} {part['input']}]")
        print()


if __name__ == "__main__":
    asyncio.run(main())
