"""The two guardrails that come with Vel. No agent has them unless it chooses them."""

from __future__ import annotations

import json
from typing import Any

from agents.features.guardrails.guardrail import (
    Decision,
    GuardContext,
    Guardrail,
    allow,
    block,
    replace,
)
from agents.telemetry.secret_masks import mask_secrets


class Secrets(Guardrail):
    """Masks likely keys in the model's text, and blocks calls that would send them elsewhere.

    It recognizes keys by their published prefixes. It does not detect keys that are split, spelled
    or encoded, or a password that looks like a word.
    """

    name = "secrets"
    description = "Masks what looks like an API key in answers, and blocks calls that send one away"

    def check_output(self, context: GuardContext, text: str) -> Decision:
        masked = mask_secrets(text)
        return allow() if masked == text else replace(masked)

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Decision:
        if context.leaves_machine and any(mask_secrets(text) != text for text in _texts(given)):
            return block("its input holds what looks like a secret, and would leave this machine")
        return allow()


def _texts(value: Any) -> list[str]:
    """Return all strings of a call's input, including keys, and other values as JSON."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in _texts(part)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [json.dumps(value)]


class MaxLength(Guardrail):
    """Blocks an answer that is too long, so that the model writes a shorter one.

    For another length subclass it with another `name` and `characters`.
    """

    name = "max_length"
    description = "Final answers have 20,000 characters at most; longer ones belong into a file"
    characters = 20_000

    def check_output(self, context: GuardContext, text: str) -> Decision:
        if not context.is_final or len(text) <= self.characters:
            return allow()
        return block(
            f"the answer has {len(text):,} characters and may have {self.characters:,}: shorten "
            "it, and put what is long into a file"
        )
