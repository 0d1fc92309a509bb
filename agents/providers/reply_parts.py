"""Check and repair a model's output, so that it can be stored and sent back."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from agents.structured_output.levels import nests_too_deep


def parse_input(text: str) -> dict[str, Any]:
    """Return a tool's input. Raises `ValueError` if it could not be stored or sent back."""
    parsed = json.loads(text, parse_constant=_no_constant)
    if not isinstance(parsed, dict):
        raise ValueError("a tool's input is an object")
    if nests_too_deep(parsed):
        raise ValueError("a tool's input nests too deep")
    if "\\u" in text:  # may be a lone surrogate
        json.dumps(parsed, ensure_ascii=False).encode()
    return parsed


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def encodable(text: str) -> str:
    """Return the text with joined surrogate pairs and without lone ones: UTF-8 has neither."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
