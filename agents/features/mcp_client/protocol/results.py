"""Parts of a server's answer: texts, pictures that were encoded again, and files."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.features.mcp_client.protocol.limits import MAX_PARTS, MAX_PICTURE_BYTES
from agents.png import NotAPicture, remade_png
from agents.structured_output.levels import MOST_LEVELS, nests_too_deep

_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "application/pdf": "pdf",
    "application/json": "json",
}


@dataclass(frozen=True, slots=True)
class File:
    """Bytes that are not text; `kind` is for people, `ending` is a known one."""

    kind: str
    ending: str
    data: bytes


Part = str | bytes | File
"""Text, a PNG picture, or a file."""


@dataclass(slots=True)
class Answer:
    parts: list[Part] = field(default_factory=list)
    is_error: bool = False


def read_answer(result: Mapping[str, Any], *, pictures: bool) -> Answer:
    """Return the parts of `result`, which the package has checked.

    Without `pictures`, the model cannot accept any: they become files.
    """
    answer = Answer(is_error=bool(result.get("isError")))
    content = result.get("content") or []
    for block in content[:MAX_PARTS]:
        answer.parts.append(_part(block, pictures))
    if len(content) > MAX_PARTS:
        answer.parts.append(f"[{len(content) - MAX_PARTS} more parts were left out]")
    structured = result.get("structuredContent")
    if nests_too_deep(structured):
        answer.parts.append(f"[structured content that nests deeper than {MOST_LEVELS} levels]")
    elif structured is not None and not _is_in_text(structured, answer.parts):
        answer.parts.append(json.dumps(structured, ensure_ascii=False))
    return answer


def _part(block: Mapping[str, Any], pictures: bool) -> Part:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in ("image", "audio"):
        return _bytes(block.get("data"), block.get("mimeType"), str(kind), pictures)
    if kind == "resource_link":
        return f"[resource {block.get('name', '')}: {block.get('uri', '')}]"
    if kind == "resource":
        resource = block.get("resource") or {}
        if "text" in resource:
            return f"[resource {resource.get('uri', '')}]\n{resource['text']}"
        return _bytes(resource.get("blob"), resource.get("mimeType"), "resource", pictures)
    return "[a part of a kind that is not known here]"


def _bytes(encoded: Any, mime: Any, kind: str, pictures: bool) -> Part:
    try:
        data = base64.b64decode(str(encoded), validate=True)
    except (binascii.Error, ValueError):
        return f"[a {kind} that cannot be read]"
    mime = mime if isinstance(mime, str) else ""
    if pictures and mime == "image/png" and len(data) <= MAX_PICTURE_BYTES:
        try:
            picture = remade_png(data)
        except NotAPicture:
            picture = b""
        if picture and len(picture) <= MAX_PICTURE_BYTES:
            return picture
    return File(kind, _ENDINGS.get(mime, "bin"), data)


def _is_in_text(structured: Any, parts: list[Part]) -> bool:
    """Return whether the text already contains the data: servers repeat it for older clients."""
    for part in parts:
        if not isinstance(part, str):
            continue
        try:
            data = json.loads(part)
        except (ValueError, RecursionError):
            data = part
        if data == structured or (isinstance(structured, dict) and structured == {"result": data}):
            return True
    return False
