"""Conditions on whom a call writes to: `ann@example.org`, `*@example.org`, `*@*.example.org`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from agents.call_patterns.fields import any_values, holds_recipient, whole_values
from sandbox.backends.regex import compile_linear
from sandbox.errors import InvalidRequest as InvalidPattern

_PATTERN = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9*-]+(\.[a-z0-9*-]+)*")
_PLAIN = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_LIKE = re2.compile(r"""[^\s<>,;:"()\[\]@]+@[^\s<>,;:"()\[\]@]+""")


def check_pattern(pattern: str) -> None:
    """Raises `InvalidPattern`."""
    if not _PATTERN.fullmatch(pattern.lower()):
        raise InvalidPattern("write an address, as ann@example.org or *@example.org.")


def permits(pattern: str, tool_input: Any) -> bool:
    """Whether the call names recipients, each as a plain address, and each fits."""
    if not isinstance(tool_input, Mapping):
        return False
    # An empty list of copies is none.
    given = {name: value for name, value in tool_input.items() if value != []}
    named = whole_values(given, holds_recipient)
    if not named:
        return False
    return all(
        _PLAIN.fullmatch(text) and _compiled(pattern).fullmatch(text.lower().encode())
        for text in named
    )


def occurs(pattern: str, tool_input: Any) -> bool:
    """Whether any recipient, however it is written, fits."""
    return any(
        _compiled(pattern).fullmatch(found.group().lower())
        for text in any_values(tool_input, holds_recipient)
        for found in _LIKE.finditer(text.encode(errors="replace"))
    )


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    check_pattern(pattern)
    return compile_linear("[^@]*".join(map(re.escape, pattern.lower().split("*"))))
