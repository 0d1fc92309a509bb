"""Labels of fields for people."""

from __future__ import annotations

_WORDS = {"mcp": "MCP", "sha256": "SHA-256"}


def label_of(name: str) -> str:
    """Return the label of a field: `mcp_tool` is "MCP tool"."""
    first, *rest = (_WORDS.get(word, word) for word in name.split("_"))
    return " ".join([first[:1].upper() + first[1:], *rest])
