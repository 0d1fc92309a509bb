"""Thoughts that go back to the model: only to the API that they came from.

Thinking and redacted_thinking blocks of the Messages API are the canonical ones. Those of another
API bear an `origin` that names it and its host, and what it wants back beside that. An epoch has
one model, and history leaves the thoughts of earlier epochs out; this is for what that does not
see, as another base URL under the same agent.
"""

from __future__ import annotations

import json

from agents.providers.base import Block

ORIGIN = "origin"
_MARK = f'"{ORIGIN}":'
_THOUGHTS = ("thinking", "redacted_thinking")


def is_foreign(block: Block, origin: str | None) -> bool:
    """Whether a block is a thought of another API than `origin` (None: the Messages API)."""
    return block.get("type") in _THOUGHTS and block.get(ORIGIN) != origin


def without_foreign(blocks_json: str) -> str:
    """An assistant's blocks for the Messages API, as JSON text; `[]` when none is left.

    The text is parsed only where it may hold some.
    """
    if _MARK not in blocks_json:
        return blocks_json
    blocks = json.loads(blocks_json)
    if not any(is_foreign(block, None) for block in blocks):
        return blocks_json
    kept = [block for block in blocks if not is_foreign(block, None)]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
