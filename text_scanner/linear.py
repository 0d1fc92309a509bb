"""Compile the scanner's regular expressions with RE2, which takes linear time for any text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import re2  # type: ignore[import-untyped]

_MAX_MEMORY = 64 * 1024**2


def compile_linear(source: str | bytes, *, any_case: bool = False) -> Any:
    """Return `source` as a compiled RE2 expression for UTF-8 bytes.

    `.` does not match a line break. `any_case` ignores case.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.case_sensitive = not any_case
    return re2.compile(source, options)


def spans(
    expression: Any, data: bytes, *, ascii_only: bool, limit: int
) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the first `limit` matches in UTF-8 `data`, in characters.

    `ascii_only` says that bytes and characters have the same offsets.
    """
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
