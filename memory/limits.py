"""Size limits of a memory. Sizes are bytes of UTF-8."""

from __future__ import annotations

MAX_FILE_BYTES = 100 * 1024
"""Of one file, and of the text that one call may write. More is an error, without a request."""
TOTAL_BYTES = 100 * 1024
"""Of all files of one agent. More is possible, with a warning to the approver."""
WARN_SHARE = 0.8
"""A request warns of a full memory from this share of `TOTAL_BYTES`."""
MAX_FILES = 1_000
"""Of one agent. Listings show all of them."""


def size_of(text: str) -> int:
    return len(text.encode("utf-8"))
