"""How many tokens a conversation has, without asking anybody.

What the model's last reply reported, plus an estimate of what was appended since. The estimate is
meant to be too high rather than too low, in every language, and costs one look at the length.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agents.events.append import dump
from agents.providers.base import PromptHead, Role, Usage
from agents.providers.pictures import image_tokens

DISTRUST = 8
"""A server that reports less than the eighth part of the estimate reports nothing of use."""
MAX_SCALE = 3.0


def estimate_tokens(text: str) -> int:
    """Three characters to a token, and two more tokens for each three bytes beyond ASCII."""
    if text.isascii():
        return len(text) // 3 + 1
    beyond = len(text.encode("utf-8", "surrogatepass")) - len(text)
    return len(text) // 3 + beyond * 2 // 3 + 1


def estimate_blocks(blocks_json: str) -> int:
    """`estimate_tokens` of content blocks as JSON text. Images count as images."""
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
    """The tokens of one conversation as it grows.

    `estimated` is all of it, prompt and tools included; `reported` what the last reply said, 0
    where nobody has; `appended` the estimate of what came after that.
    """

    estimated: int = 0
    reported: int = 0
    appended: int = 0
    scale: float = 1.0
    """How much too low the estimate was the last time; text of digits and codes is dense."""

    @property
    def total(self) -> int:
        if not self.reported:
            return int(self.estimated * self.scale)
        return self.reported + int(self.appended * self.scale)

    def append(self, blocks_json: str) -> None:
        tokens = estimate_blocks(blocks_json)
        self.estimated += tokens
        self.appended += tokens

    def replied(self, usage: Usage, content: str) -> None:
        """The model has answered with `content`, which is part of the conversation now."""
        tokens = estimate_blocks(content)
        self.estimated += tokens
        if usage.total * DISTRUST < self.estimated:
            self.appended += tokens
            return
        self.reported, self.appended = usage.total, 0
        self.scale = min(max(1.0, usage.total / self.estimated), MAX_SCALE)


def head_tokens(head: PromptHead) -> int:
    return estimate_tokens(head.system) + estimate_tokens(dump(list(head.tools)))


def measured(
    head: PromptHead,
    history: Sequence[tuple[Role, str]],
    scale: float = 1.0,
    last: Usage | None = None,
) -> Meter:
    """The meter of a conversation that is read anew. `last` is what its last reply reported."""
    meter = Meter(estimated=head_tokens(head), scale=scale)
    replies = [index for index, (role, _) in enumerate(history) if role == "assistant"]
    for index, (_, blocks) in enumerate(history):
        if last is not None and replies and index == replies[-1]:
            meter.replied(last, blocks)
        else:
            meter.append(blocks)
    return meter
