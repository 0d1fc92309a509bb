"""Read tools' results for the demo's script."""

from __future__ import annotations

import json
from typing import Any

from agents.providers.scripts.base import Message

PROGRAM_SECONDS = 300
"""The time limit of each program. A busy machine may need more than the tools' defaults."""


class Unexpected(Exception):
    """A tool's result with which the script cannot continue; the message has the reason."""


def results_of(message: Message) -> list[Any]:
    """Return the results of the last calls, in order: parsed JSON, or else text.

    Raises `Unexpected` for one that failed.
    """
    results: list[Any] = []
    for block in message["content"]:
        if block["type"] != "tool_result":
            continue
        content = block["content"]
        if block.get("is_error"):
            raise Unexpected(f"a tool failed: {content}")
        try:
            result = json.loads(content)
        except ValueError:
            result = content
        if isinstance(result, dict) and result.get("exit_code", 0) != 0:
            said = (result.get("stderr") or result["stdout"]).strip()
            raise Unexpected(f"a program ended with exit code {result['exit_code']}: {said}")
        results.append(result)
    return results
