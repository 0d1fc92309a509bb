"""The scanner's regular expressions: RE2 for UTF-8 bytes, with time linear in the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import re2  # type: ignore[import-untyped]

_MAX_MEMORY = 64 * 1024**2


def compile_linear(source: str | bytes, *, any_case: bool = False) -> Any:
    """Compile `source` to an RE2 object for bytes. `.` does not match a line break."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.case_sensitive = not any_case
    return re2.compile(source, options)


def spans(
    expression: Any, data: bytes, *, ascii_only: bool, limit: int
) -> Iterator[tuple[int, int]]:
    """Yield the first `limit` matches in UTF-8 `data`, as character offsets."""
    at_byte = at_character = 0
    for count, match in enumerate(expression.finditer(data)):
        if count >= limit:
            return
        start, end = match.span()
        if ascii_only:
            yield start, end
            continue
        first = at_character + len(data[at_byte:start].decode("utf-8", "replace"))
        last = first + len(data[start:end].decode("utf-8", "replace"))
        at_byte, at_character = end, last
        yield first, last
