"""Compile RE2 expressions for any bytes, and sets of words, unlike `text_scanner.linear`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import re2  # type: ignore[import-untyped]

_MAX_MEMORY = 64 * 1024**2


def compile_bytes(source: bytes) -> Any:
    """Return the expression `source`, compiled for bytes that are not text."""
    options = _options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(source, options)


def compile_set(sources: Iterable[bytes]) -> Any:
    """Return a set of words that one pass finds in a text, in any case.

    Its method `Match` returns the indexes of the words that occur, or None.
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
