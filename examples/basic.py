"""A minimal program: one message with a streamed answer, and a second message in the session.

Run it with `python examples/basic.py`. With `ANTHROPIC_API_KEY` it uses Claude. Without it, it
plays the script below, so that you can see how it works.
"""

import asyncio
import os
from typing import Any

from vel import HarnessConfig, VelHarness, scripted_model

SCRIPT: list[dict[str, Any] | str] = [
    {
        "text": "I write the haiku into a file.",
        "tool_calls": [("write_file", {"path": "/haiku.md", "content": "Rows outlive crashes\n"})],
    },
    "The haiku is in /haiku.md.",
]


async def main() -> None:
    model = (
        {"provider": "anthropic"} if os.environ.get("ANTHROPIC_API_KEY") else scripted_model(SCRIPT)
    )
    # Without a sandbox, files are kept in the session and commands are not available.
    async with VelHarness(HarnessConfig(model=model, sandbox=False)) as harness:
        async for part in harness.run_stream("Write a haiku into /haiku.md", session_id="user-123"):
            if part["type"] == "text-delta":
                print(part["delta"], end="", flush=True)
            elif part["type"] == "tool-input-available":
                print(f"\n[{part['toolName']}]")
        # In the same session, the agent remembers the conversation and has its files.
        print("\n" + await harness.run("Where is it?", session_id="user-123"))
        print("Files:", ", ".join(file.path for file in await harness.files()))


if __name__ == "__main__":
    asyncio.run(main())
