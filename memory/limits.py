"""How large a memory may be. Sizes are bytes of UTF-8."""

from __future__ import annotations

MAX_FILE_BYTES = 100 * 1024
"""Of one file, and of what one call may write: refused before anybody is asked."""
TOTAL_BYTES = 100 * 1024
"""Of all files of one agent. More is possible, with a warning to whoever decides."""
WARN_SHARE = 0.8
"""From this share of `TOTAL_BYTES` on a request says how full the memory is."""
MAX_FILES = 1_000
"""Of one agent. Listings show all of them."""


def size_of(text: str) -> int:
    return len(text.encode("utf-8"))
