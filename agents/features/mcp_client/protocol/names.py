"""What a model calls the tool of a server: `mcp__SERVER__TOOL`, as models and people know it."""

from __future__ import annotations

import hashlib
import re

PREFIX = "mcp__"
LONGEST = 64
"""What model servers take."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def offered_name(server: str, tool: str) -> str:
    """The same for the same tool always. What does not fit is changed, and ends in a digest."""
    whole = f"{PREFIX}{server}__{tool}"
    if _PLAIN.fullmatch(tool) and len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_OTHER.sub('_', whole)[: LONGEST - 9]}_{digest}"
