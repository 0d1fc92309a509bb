"""Thoughts in messages to the model: only for the API that they came from.

Thinking and redacted_thinking blocks of the Messages API are the canonical ones. Those of another
API have an `origin` with its name and host, and additional data for it. An epoch has one model, and
the history omits the thoughts of earlier epochs; this module handles other cases, such as another
base URL for the same agent.
"""

from __future__ import annotations

import json

from agents.providers.base import Block

ORIGIN = "origin"
_MARK = f'"{ORIGIN}":'
_THOUGHTS = ("thinking", "redacted_thinking")


def is_foreign(block: Block, origin: str | None) -> bool:
    """Return whether a block is a thought of another API than `origin` (None: the Messages API)."""
    return block.get("type") in _THOUGHTS and block.get(ORIGIN) != origin


def without_foreign(blocks_json: str) -> str:
    """Return an assistant's blocks for the Messages API, as JSON text; possibly `[]`.

    The text is parsed only if it may contain foreign thoughts.
    """
    if _MARK not in blocks_json:
        return blocks_json
    blocks = json.loads(blocks_json)
    if not any(is_foreign(block, None) for block in blocks):
        return blocks_json
    kept = [block for block in blocks if not is_foreign(block, None)]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
