"""Size limits of a memory. Sizes are bytes of UTF-8."""

from __future__ import annotations

MAX_FILE_BYTES = 100 * 1024
"""Limit of one file, and of the text of one call. More is an error, without a request."""
TOTAL_BYTES = 100 * 1024
"""Advised size of the knowledge of an agent, and of one person's `me/`.

More is possible, with a warning to the approver.
"""
WARN_SHARE = 0.8
"""A request warns of a full memory from this share of `TOTAL_BYTES`."""
MAX_FILES = 1_000
"""Limit of the knowledge files of an agent, and of the files of one person's `me/`.

Listings show all of them.
"""
ALWAYS_BYTES = 4_096
"""Limit of the file in each prompt, which contains only the start of a longer file."""
INDEX_BYTES = 4_096
"""Limit of the index of the other files in the prompt."""
DESCRIPTION_CHARACTERS = 120
"""Limit of the line of a file in the index."""
PAGE_CHARACTERS = 20_000
"""Limit of one result of `read_memory`."""


def size_of(text: str) -> int:
    return len(text.encode("utf-8"))
