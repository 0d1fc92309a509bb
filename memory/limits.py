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
ALWAYS_BYTES = 4_096
"""Of the file that each prompt contains. The rest of a longer file is not in the prompt."""
INDEX_BYTES = 4_096
"""Of the index of the other files in the prompt."""
DESCRIPTION_CHARACTERS = 120
"""Of a file in the index."""
PAGE_CHARACTERS = 20_000
"""Of one result of `read_memory`."""


def size_of(text: str) -> int:
    return len(text.encode("utf-8"))
