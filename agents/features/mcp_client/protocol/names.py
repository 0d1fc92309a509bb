"""Names of servers' tools for models and people: `mcp__SERVER__TOOL`."""

from __future__ import annotations

import hashlib
import re

PREFIX = "mcp__"
LONGEST = 64
"""The limit of model servers."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def offered_name(server: str, tool: str) -> str:
    """Return the constant name of a tool. An invalid name is changed, and ends in a digest."""
    whole = f"{PREFIX}{server}__{tool}"
    if _PLAIN.fullmatch(tool) and len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_OTHER.sub('_', whole)[: LONGEST - 9]}_{digest}"
