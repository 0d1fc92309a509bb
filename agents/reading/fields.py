"""Inputs by name, for tools that nobody here knows and for what a known one leaves over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents.reading.parts import Field, FieldsSection, Note, one_line
from agents.reading.spans import lines_of


def fields_section(title: str, fields: Mapping[str, Any], *notes: Note) -> FieldsSection:
    shown = tuple(Field(one_line(str(name)), lines_of(text_of(fields[name]))) for name in fields)
    return FieldsSection(title, shown, notes)


def text_of(value: object) -> str:
    """A string as it is, anything else as JSON; numbers with all their digits."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        # Indenting is Python code; without it json.dumps goes deeper.
        return json.dumps(value, ensure_ascii=False)
