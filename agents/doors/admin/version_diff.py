"""The changes of a version of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.doors.admin.text import pretty
from agents.hidden_text import visible
from agents.review.matching import LINE_STEPS, Steps
from agents.review.unified import unified_lines

CONTEXT_LINES = 2


@dataclass(frozen=True)
class DiffLine:
    """A line of a diff. `sign` is added, removed, same or gap."""

    sign: str
    text: str


@dataclass(frozen=True)
class FieldChange:
    """A changed field. `lines` replaces `before` and `after` if one of them has several lines."""

    name: str
    before: str
    after: str
    lines: tuple[DiffLine, ...] = ()


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """Return the fields that differ, in the order of `after`."""
    names = [*after, *(name for name in before if name not in after)]
    return [
        _change(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _change(name: str, before: object, after: object) -> FieldChange:
    old, new = _text(before), _text(after)
    if "\n" not in old + new and len(old) + len(new) <= 200:
        return FieldChange(name, old, new)
    return FieldChange(name, old, new, tuple(text_lines(old, new)))


def _text(value: object) -> str:
    return visible(value if isinstance(value, str) else pretty(_given(value)))


def _given(value: object) -> object:
    """Return `value` without nested keys that are null, such as most keys of a rule."""
    if isinstance(value, Mapping):
        return {name: _given(inner) for name, inner in value.items() if inner is not None}
    return [_given(inner) for inner in value] if isinstance(value, list) else value


def text_lines(before: str, after: str) -> list[DiffLine]:
    """Return the lines that differ, with context. Both texts must be safe to display."""
    signs = {"+": "added", "-": "removed", " ": "same"}
    old, new = before.splitlines(), after.splitlines()
    found = [
        DiffLine("gap", "…") if line.startswith("@@") else DiffLine(signs[line[0]], line[1:])
        for line in unified_lines(old, new, Steps(LINE_STEPS), CONTEXT_LINES)
    ]
    return found[1:] if found and found[0].sign == "gap" else found
