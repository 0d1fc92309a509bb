"""The building blocks of scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.providers.base import Block

Message = dict[str, Any]
"""`{"role", "content": [blocks]}`, adjacent ones of the same role merged."""

ENDED = "This is the end of the script; the offline scripted model has nothing more to say."


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """One reply: text, then tool calls as (tool name, input). `delay` in seconds, in total."""

    text: str = ""
    tool_calls: Sequence[tuple[str, Block]] = ()
    delay: float = 0.0


ScriptFunction = Callable[[list[Message]], ScriptTurn]
"""A script that reads the conversation. It must return the same turn for the same conversation."""


@dataclass(frozen=True, slots=True)
class Script:
    """Turns that answer one request of the user, in order. Every request starts again."""

    turns: Sequence[ScriptTurn]

    def __call__(self, messages: list[Message]) -> ScriptTurn:
        """Return the turn after the number of replies since the user's request."""
        played = 0
        for message in reversed(messages):
            if message["role"] == "assistant":
                played += 1
            elif is_request(message):
                break
        return self.turns[played] if played < len(self.turns) else ScriptTurn(ENDED)


def is_request(message: Message) -> bool:
    """Return whether a message is a user's request: a user message without tool results."""
    return message["role"] == "user" and all(
        block["type"] != "tool_result" for block in message["content"]
    )


def text_of(message: Message) -> str:
    """Return the text blocks of a message, as paragraphs."""
    return "\n\n".join(block["text"] for block in message["content"] if block["type"] == "text")
