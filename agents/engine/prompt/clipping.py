"""Cutting content blocks. The same limit always results in the same bytes.

Blocks keep their types and ids, so that calls and results stay pairs.
"""

from __future__ import annotations

import json
from typing import Any

from agents.events.append import dump
from agents.providers.base import Block

IMAGE_LEFT_OUT = "[image left out]"
INPUT_SHARE = 4
"""The limit for the whole input of a call, as a multiple of the limit for one of its strings."""


def cut_middle(text: str, limit: int, note: str = "") -> str:
    """Return the head and the tail of `text`, in about `limit` bytes, with the size of the rest."""
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text
    head, tail = data[: limit * 2 // 3], data[len(data) - limit // 3 :]
    missing = len(data) - len(head) - len(tail)
    return (
        head.decode("utf-8", "ignore")
        + f"\n[… {missing:,} bytes left out{note} …]\n"
        + tail.decode("utf-8", "ignore")
    )


def clip_blocks(content: str, limit: int, note: str = "") -> tuple[str, int]:
    """Cut the texts in a JSON array of blocks to about `limit` bytes.

    Returns the array and the number of blocks that became shorter. An array without long texts
    keeps all its bytes.
    """
    if _is_short(content, limit) and '"image"' not in content:
        return content, 0
    blocks = json.loads(content)
    clipped = [_clip_block(block, limit, note) for block in blocks]
    changed = sum(new != old for new, old in zip(clipped, blocks, strict=True))
    return (dump(clipped), changed) if changed else (content, 0)


def clip_result(result: str, limit: int) -> str:
    """Cut a tool's result, which is the JSON text of a string or of a list of blocks."""
    if _is_short(result, limit) and '"image"' not in result:
        return result
    content = json.loads(result)
    if isinstance(content, str):
        return dump(cut_middle(content, limit))
    return dump([_clip_block(block, limit, "") for block in content])


def _is_short(text: str, limit: int) -> bool:
    return len(text) <= limit and (text.isascii() or len(text.encode()) <= limit)


def _clip_block(block: Block, limit: int, note: str) -> Block:
    kind = block["type"]
    if kind == "text":
        return {**block, "text": cut_middle(block["text"], limit, note)}
    if kind == "image":
        return {"type": "text", "text": IMAGE_LEFT_OUT}
    if kind == "tool_use":
        return {**block, "input": _clip_input(block["input"], limit)}
    if kind == "tool_result":
        return {**block, "content": json.loads(clip_result(dump(block["content"]), limit))}
    return block


def _clip_input(arguments: Block, limit: int) -> Block:
    shorter = _shorten(arguments, limit)
    text = dump(shorter)
    if len(text.encode()) <= limit * INPUT_SHARE:
        return shorter  # type: ignore[no-any-return]
    return {"left_out": cut_middle(text, limit)}


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return cut_middle(value, limit)
    if isinstance(value, dict):
        return {key: _shorten(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item, limit) for item in value]
    return value
