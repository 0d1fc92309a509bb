"""Fields outside of the specification, stored in `metadata` as JSON in a string.

The specification allows six fields at the top level and a map of strings to strings in `metadata`.
Other fields of a head are exported to that map, and imported from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from skills_app.library.frontmatter import Value
from skills_app.library.package import Head

PLAIN = ("version", "author")
"""Stored unchanged: other programs write these keys too."""

CARRIED = {
    "title": "vel-title",
    "tags": "vel-tags",
    "triggers": "vel-triggers",
    "requires": "vel-requires",
    "tools_required": "vel-tools-required",
    "priority": "vel-priority",
}
"""Vel's fields and their keys in `metadata`. `tools_required` never becomes `allowed-tools`: that
would approve tools which the author only needs.
"""

EXTRA = "vel-extra"
"""The unknown fields, as one JSON object of strings."""


def as_text(value: Value) -> str:
    """Return a string unchanged, lists and maps as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def carried_metadata(head: Head) -> dict[str, str]:
    """Return `metadata` for an export of `head`: its own entries and the additional fields."""
    metadata = dict(head.metadata)
    for field in PLAIN:
        if text := getattr(head, field):
            metadata[field] = text
    for field, key in CARRIED.items():
        value = getattr(head, field)
        # Without it, other programs' tags in `metadata` would be read as these.
        if value or (field == "tags" and "tags" in metadata):
            metadata[key] = json.dumps(value, ensure_ascii=False)
    if head.extra:
        metadata[EXTRA] = json.dumps(head.extra, ensure_ascii=False)
    return metadata


def from_json(text: Value) -> Value | None:
    """Return the value of a stored field, numbers and booleans as text; None for invalid JSON."""
    try:
        value = json.loads(as_text(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str | list | dict) else json.dumps(value)


def carried_extra(text: Value) -> Mapping[str, str] | None:
    """Return the unknown fields of an earlier export; None for other content."""
    held = from_json(text)
    if isinstance(held, dict) and all(isinstance(value, str) for value in held.values()):
        return {key: as_text(value) for key, value in held.items()}
    return None
