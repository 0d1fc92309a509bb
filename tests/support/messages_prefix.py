"""Check that conversations only grow, by the bytes of the requests.

Cache marks are removed first: they move, and the prompt cache ignores them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from tests.support.messages_script import Request

_MARK = re.compile(rb',\s*"cache_control"\s*:\s*\{[^{}]*\}|"cache_control"\s*:\s*\{[^{}]*\}\s*,?')
_SPACE = re.compile(r"[\s,:]*")
_decode = json.JSONDecoder().raw_decode


def assert_prefix_stable(requests: Sequence[Request]) -> None:
    """Check that each request repeats the previous one, byte for byte, and only appends.

    Tools, system and every field except the messages are equal. Earlier messages are equal, but the
    last message of the earlier request may have more blocks.
    """
    assert len(requests) > 1, f"wanted two requests to compare, got {len(requests)}"
    earlier = _slices(requests[0].body)
    for number, request in enumerate(requests[1:], start=1):
        later = _slices(request.body)
        old, new = earlier.pop("messages"), later["messages"]
        for name, value in earlier.items():
            assert later.get(name) == value, f"request {number} changed {name!r}"
        assert set(later) == {*earlier, "messages"}, f"request {number} has other fields"
        assert len(new) >= len(old), f"request {number} has fewer messages than the one before it"
        for index, text in enumerate(old[:-1]):
            assert new[index] == text, f"request {number} changed messages[{index}]"
        grown = old[-1].removesuffix("]}")
        assert new[len(old) - 1].startswith(grown), f"request {number} changed its last old message"
        earlier = later


def _slices(body: bytes) -> dict[str, Any]:
    """Return the text of every top-level value in the body, and of each message."""
    text = _MARK.sub(b"", body).decode()
    slices: dict[str, Any] = {}
    at = text.index("{") + 1
    while True:
        at = _skip(text, at)
        if text[at] == "}":
            return slices
        name, at = scanstring(text, at + 1, True)
        at = _skip(text, at)
        _, end = _decode(text, at)
        slices[name] = _elements(text, at) if name == "messages" else text[at:end]
        at = end


def _elements(text: str, at: int) -> list[str]:
    elements = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _decode(text, at)
        elements.append(text[at:end])
        at = _skip(text, end)
    return elements


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
