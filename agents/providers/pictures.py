"""Pictures in content blocks: what they come to in tokens, and in the bytes that say nothing."""

from __future__ import annotations

import re

from agents.providers.base import Block

MAX_IMAGE_TOKENS = 5_000
"""More than any picture costs; its bytes say nothing."""
PIXELS_PER_TOKEN = 750

_BASE64 = '"type":"base64"'
_DATA = re.compile(r'"data":"([A-Za-z0-9+/=]*)"')


def image_tokens(block: Block) -> int:
    """About what a picture costs: by its pixels where they are known, else more than any does."""
    source = block.get("source", {})
    width, height = source.get("width"), source.get("height")
    if not isinstance(width, int) or not isinstance(height, int):
        return MAX_IMAGE_TOKENS
    return min(width * height // PIXELS_PER_TOKEN + 50, MAX_IMAGE_TOKENS)


def excess_bytes(blocks_json: str) -> int:
    """How many bytes of `blocks_json` stand for fewer tokens, being pictures.

    What is left is still no less than its tokens.
    """
    if _BASE64 not in blocks_json:
        return 0
    return sum(max(0, len(found[1]) - MAX_IMAGE_TOKENS) for found in _DATA.finditer(blocks_json))
