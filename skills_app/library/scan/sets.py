"""Expressions of RE2 in other ways than the memory scanner has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import re2  # type: ignore[import-untyped]

_MAX_MEMORY = 64 * 1024**2


def compile_bytes(source: bytes) -> Any:
    """An expression over bytes that are no text."""
    options = _options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(source, options)


def compile_set(sources: Iterable[bytes]) -> Any:
    """Many words looked for in one pass, in any case of their letters.

    `Match` gives the numbers of those that are there, None for none.
    """
    options = _options()
    options.case_sensitive = False
    found = re2.Set.SearchSet(options)
    for source in sources:
        found.Add(source)
    found.Compile()
    return found


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    return options
