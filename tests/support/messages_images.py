"""The rules of the Messages API for images. Standard library only, like the other modules."""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any

MAX_BYTES = 5 * 1024 * 1024
MAX_IMAGES = 100
MANY, SIDE, SIDE_OF_MANY = 20, 8000, 2000
_HEADS = {
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def image_problem(block: dict[str, Any]) -> str:
    """Return the error of an image block, or ""."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        return "source: Input tag found using 'type' does not match 'base64', 'url', 'file'"
    if set(source) != {"type", "media_type", "data"}:
        return "source.base64: Extra inputs are not permitted"
    kind = source["media_type"]
    if kind not in _HEADS:
        return f"source.base64.media_type: Input should be {', '.join(_HEADS)}"
    try:
        data = base64.b64decode(source["data"], validate=True)
    except (binascii.Error, ValueError):
        return "source.base64: invalid base64 data"
    if len(source["data"]) > MAX_BYTES:
        return f"source.base64: image exceeds 5 MB maximum: {len(source['data'])} bytes"
    if not data.startswith(_HEADS[kind]):
        return f"source.base64.data: The image was specified using the {kind} media type"
    return ""


def side_of(block: dict[str, Any]) -> int:
    """Return the longer side of a PNG in pixels, or 0 for other formats."""
    data = base64.b64decode(block["source"]["data"])
    if not data.startswith(_HEADS["image/png"]):
        return 0
    return max(struct.unpack_from(">II", data, 16))


def images_problem(messages: list[dict[str, Any]]) -> str:
    """Return the error of all images of a request together, or ""."""
    blocks = [
        block
        for message in messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "image"
    ]
    if len(blocks) > MAX_IMAGES:
        return f"Too much media: {len(blocks)} images > {MAX_IMAGES}"
    limit = SIDE_OF_MANY if len(blocks) > MANY else SIDE
    if any(side_of(block) > limit for block in blocks):
        return f"image dimensions exceed max allowed size: {limit} pixels"
    return ""
