"""What a model wrote, made fit to be stored and sent back."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from agents.structured_output.levels import nests_too_deep


def parse_input(text: str) -> dict[str, Any]:
    """A tool's input. `ValueError` for what could not be sent back or stored as JSON."""
    parsed = json.loads(text, parse_constant=_no_constant)
    if not isinstance(parsed, dict):
        raise ValueError("a tool's input is an object")
    if nests_too_deep(parsed):
        raise ValueError("a tool's input nests too deep")
    if "\\u" in text:  # may be half of a surrogate pair
        json.dumps(parsed, ensure_ascii=False).encode()
    return parsed


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def encodable(text: str) -> str:
    """The text, with surrogate pairs joined and lone halves replaced: UTF-8 has neither."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
