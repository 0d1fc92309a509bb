"""Store fields that the specification does not know in `metadata`, as JSON strings.

The specification allows six fields at the top level of a SKILL.md, and a map of strings to strings
in `metadata`. An export writes all other fields to that map, and an import reads them back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from skills_app.library.frontmatter import Value
from skills_app.library.package import Head

PLAIN = ("version", "author")
"""Fields that are stored as they are, because other programs write these keys too."""

CARRIED = {
    "title": "vel-title",
    "tags": "vel-tags",
    "triggers": "vel-triggers",
    "requires": "vel-requires",
    "tools_required": "vel-tools-required",
    "priority": "vel-priority",
}
"""The key in `metadata` of each field of Vel.

`tools_required` never becomes `allowed-tools`: that would approve tools which the author only
needs.
"""

EXTRA = "vel-extra"
"""The key in `metadata` of all unknown fields, which are one JSON object of strings."""


def as_text(value: Value) -> str:
    """Return a string unchanged, and a list or map as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def carried_metadata(head: Head) -> dict[str, str]:
    """Return the `metadata` to export for `head`: its own entries and the fields of this module."""
    metadata = dict(head.metadata)
    for field in PLAIN:
        if text := getattr(head, field):
            metadata[field] = text
    for field, key in CARRIED.items():
        value = getattr(head, field)
        # Write `tags` even if empty: otherwise other programs' `tags` in `metadata` would be read
        # as Vel's.
        if value or (field == "tags" and "tags" in metadata):
            metadata[key] = json.dumps(value, ensure_ascii=False)
    if head.extra:
        metadata[EXTRA] = json.dumps(head.extra, ensure_ascii=False)
    return metadata


def from_json(text: Value) -> Value | None:
    """Return the value that `carried_metadata` stored as JSON in `text`, None if it is no JSON.

    Numbers, booleans and null are returned as text.
    """
    try:
        value = json.loads(as_text(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str | list | dict) else json.dumps(value)


def carried_extra(text: Value) -> Mapping[str, str] | None:
    """Return the unknown fields that `carried_metadata` stored in `text`.

    Returns None if `text` is no JSON object of strings.
    """
    held = from_json(text)
    if isinstance(held, dict) and all(isinstance(value, str) for value in held.values()):
        return {key: as_text(value) for key, value in held.items()}
    return None
