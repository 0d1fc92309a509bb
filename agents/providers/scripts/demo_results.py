"""What the demo's script reads of its tools' results."""

from __future__ import annotations

import json
from typing import Any

from agents.providers.scripts.base import Message


class Unexpected(Exception):
    """A tool's result that the script cannot go on from; the message says why."""


def results_of(message: Message) -> list[Any]:
    """The results of the last calls, in order; text for what is no JSON object.

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
