"""Fields that the specification does not have, carried below `metadata` as JSON in a string.

The specification allows six fields at the top level and a map of strings to strings below
`metadata`. What else a head says goes out there and comes back from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from skills_app.library.frontmatter import Value
from skills_app.library.package import Head

PLAIN = ("version", "author")
"""Carried as they are: others write these keys too."""

CARRIED = {
    "title": "vel-title",
    "tags": "vel-tags",
    "triggers": "vel-triggers",
    "requires": "vel-requires",
    "tools_required": "vel-tools-required",
    "priority": "vel-priority",
}
"""Vel's fields and the keys below `metadata`. `tools_required` never becomes `allowed-tools`:
that would approve tools which the author only needs."""

EXTRA = "vel-extra"
"""The fields that nobody here knows, as one JSON object of strings."""


def as_text(value: Value) -> str:
    """A string as it is, lists and maps as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def carried_metadata(head: Head) -> dict[str, str]:
    """`metadata` of an export of `head`: its own entries and the fields that are carried."""
    metadata = dict(head.metadata)
    for field in PLAIN:
        if text := getattr(head, field):
            metadata[field] = text
    for field, key in CARRIED.items():
        value = getattr(head, field)
        # Without it, tags that somebody else wrote below `metadata` would be read as these.
        if value or (field == "tags" and "tags" in metadata):
            metadata[key] = json.dumps(value, ensure_ascii=False)
    if head.extra:
        metadata[EXTRA] = json.dumps(head.extra, ensure_ascii=False)
    return metadata


def from_json(text: Value) -> Value | None:
    """What a carried field says, numbers and truth values as text; None where it is no JSON."""
    try:
        value = json.loads(as_text(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str | list | dict) else json.dumps(value)


def carried_extra(text: Value) -> Mapping[str, str] | None:
    """The unknown fields of an earlier export; None where it is something else."""
    held = from_json(text)
    if isinstance(held, dict) and all(isinstance(value, str) for value in held.values()):
        return {key: as_text(value) for key, value in held.items()}
    return None
