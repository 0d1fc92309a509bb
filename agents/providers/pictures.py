"""Pictures in content blocks: their tokens, and their bytes."""

from __future__ import annotations

import re

from agents.providers.base import Block

MAX_IMAGE_TOKENS = 5_000
"""More tokens than any picture has. They do not depend on its bytes."""
PIXELS_PER_TOKEN = 750

_BASE64 = '"type":"base64"'
_DATA = re.compile(r'"data":"([A-Za-z0-9+/=]*)"')


def image_tokens(block: Block) -> int:
    """Return a picture's approximate tokens, by its pixels; `MAX_IMAGE_TOKENS` if unknown."""
    source = block.get("source", {})
    width, height = source.get("width"), source.get("height")
    if not isinstance(width, int) or not isinstance(height, int):
        return MAX_IMAGE_TOKENS
    return min(width * height // PIXELS_PER_TOKEN + 50, MAX_IMAGE_TOKENS)


def excess_bytes(blocks_json: str) -> int:
    """Return how many bytes of pictures in `blocks_json` exceed their tokens.

    The remaining bytes are still at least as many as the tokens.
    """
    if _BASE64 not in blocks_json:
        return 0
    return sum(max(0, len(found[1]) - MAX_IMAGE_TOKENS) for found in _DATA.finditer(blocks_json))
