"""What a scripted model plays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.providers.base import Block

Message = dict[str, Any]
"""`{"role", "content": [blocks]}`, neighbours of the same role merged."""

ENDED = "This is the end of the script; the offline scripted model has nothing more to say."


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """One reply: text, then tool calls as (tool name, input). `delay` in seconds, in all."""

    text: str = ""
    tool_calls: Sequence[tuple[str, Block]] = ()
    delay: float = 0.0


ScriptFunction = Callable[[list[Message]], ScriptTurn]
"""A script that looks at the conversation. It must say the same to the same conversation."""


@dataclass(frozen=True, slots=True)
class Script:
    """Turns that answer one request of the user, in order. Every request begins anew."""

    turns: Sequence[ScriptTurn]

    def __call__(self, messages: list[Message]) -> ScriptTurn:
        """The turn after as many replies as there are since the user's request."""
        played = 0
        for message in reversed(messages):
            if message["role"] == "assistant":
                played += 1
            elif is_request(message):
                break
        return self.turns[played] if played < len(self.turns) else ScriptTurn(ENDED)


def is_request(message: Message) -> bool:
    """Whether this is what a user said: a user message that answers no tool call."""
    return message["role"] == "user" and all(
        block["type"] != "tool_result" for block in message["content"]
    )


def text_of(message: Message) -> str:
    """The text blocks of a message, as paragraphs."""
    return "\n\n".join(block["text"] for block in message["content"] if block["type"] == "text")
