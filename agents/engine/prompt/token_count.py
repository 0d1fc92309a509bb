"""Estimate of the tokens in a conversation, without a request to the provider.

It is the number that the model's last reply reported, plus an estimate for later messages. The
estimate should be too high rather than too low in every language, and depends only on lengths.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agents.events.append import dump
from agents.providers.base import PromptHead, Role, Usage, image_tokens

DISTRUST = 8
"""A report of less than an eighth of the estimate is ignored."""
MAX_SCALE = 3.0


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text.

    Three characters are one token; each three additional bytes of UTF-8 are two more.
    """
    if text.isascii():
        return len(text) // 3 + 1
    beyond = len(text.encode("utf-8", "surrogatepass")) - len(text)
    return len(text) // 3 + beyond * 2 // 3 + 1


def estimate_blocks(blocks_json: str) -> int:
    """Return the estimated tokens of content blocks as JSON text. Images count separately."""
    if '"type":"image"' not in blocks_json:
        return estimate_tokens(blocks_json)
    return _without_images(json.loads(blocks_json))


def _without_images(value: object) -> int:
    if isinstance(value, list):
        return sum(_without_images(item) for item in value)
    if isinstance(value, dict) and value.get("type") == "image":
        return image_tokens(value)
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        return 30 + _without_images(value["content"])
    return estimate_tokens(json.dumps(value, ensure_ascii=False))


@dataclass(slots=True)
class Meter:
    """Counter of the tokens in one conversation, which can grow."""

    estimated: int = 0
    """The estimate for the whole conversation, with the prompt and the tools."""
    reported: int = 0
    """The number of tokens that the last reply reported; 0 without a reply."""
    appended: int = 0
    """The estimate for the messages after the last reply."""
    scale: float = 1.0
    """The factor by which the last estimate was too low, for example because of many digits."""

    @property
    def total(self) -> int:
        """The number of tokens in the next request."""
        if not self.reported:
            return int(self.estimated * self.scale)
        return self.reported + int(self.appended * self.scale)

    def append(self, blocks_json: str) -> None:
        """Count another message of the conversation."""
        tokens = estimate_blocks(blocks_json)
        self.estimated += tokens
        self.appended += tokens

    def replied(self, usage: Usage, content: str) -> None:
        """Count a reply of the model, which reported `usage`.

        A report far below the estimate is ignored (`DISTRUST`).
        """
        tokens = estimate_blocks(content)
        self.estimated += tokens
        if usage.total * DISTRUST < self.estimated:
            self.appended += tokens
            return
        self.reported, self.appended = usage.total, 0
        self.scale = min(max(1.0, usage.total / self.estimated), MAX_SCALE)


def head_tokens(head: PromptHead) -> int:
    """Return the estimated tokens of the system prompt and the tools."""
    return estimate_tokens(head.system) + estimate_tokens(dump(list(head.tools)))


def measured(
    head: PromptHead,
    history: Sequence[tuple[Role, str]],
    scale: float = 1.0,
    last: Usage | None = None,
) -> Meter:
    """Return the counter of the conversation with this head and history.

    `scale` is the first value of `Meter.scale`, and `last` the usage that the last reply reported,
    if it is known.
    """
    meter = Meter(estimated=head_tokens(head), scale=scale)
    replies = [index for index, (role, _) in enumerate(history) if role == "assistant"]
    for index, (_, blocks) in enumerate(history):
        if last is not None and replies and index == replies[-1]:
            meter.replied(last, blocks)
        else:
            meter.append(blocks)
    return meter
