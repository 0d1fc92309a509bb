"""Describe the model and repeat the request: the smallest proof that a run works."""

from __future__ import annotations

from agents.providers.scripts.base import Message, ScriptTurn, is_request, text_of


def script(messages: list[Message]) -> ScriptTurn:
    """Answer the last request."""
    requests = [text_of(message) for message in messages if is_request(message)]
    return ScriptTurn(
        f"I am the offline scripted model; no language model is asked. You said:\n\n{requests[-1]}"
    )
