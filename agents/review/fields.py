"""Inputs by name, for unknown tools and for unused inputs of known tools."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

from agents.review.json_text import compact, text_of
from agents.review.parts import WHOLE_INPUT, Field, FieldsSection, Note, cut_notes, name_in
from agents.review.room import CHARACTERS, LINES, Room, end_share
from agents.review.spans import lines_of

FIELDS = 1_000
"""Of more fields, only the first and the last ones are shown."""
_LINE_COST = CHARACTERS // LINES


def fields_section(
    title: str, fields: Mapping[str, Any], *notes: Note, where: str = WHOLE_INPUT
) -> FieldsSection:
    """Return a section of `fields`, a reversible mapping. `where` is about omitted parts."""
    room = Room()
    missing = max(len(fields) - FIELDS, 0)
    last = end_share(FIELDS) if missing else 0
    head = list(islice(fields, FIELDS - last))
    tail = list(islice(reversed(cast("dict[str, Any]", fields)), last))[::-1]
    shown = fields_of([(name, fields[name]) for name in (*head, *tail)], room)
    if missing:
        words = f"⋯ {missing:,} more {'input is' if missing == 1 else 'inputs are'} not shown ⋯"
        shown.insert(len(head), Field(words, ()))
        text = f"{missing:,} inputs between the first and the last ones are not shown. {where}"
        notes = (*notes, Note(text, "warning"))
    return FieldsSection(title, tuple(shown), (*notes, *cut_notes(room, where)))


def fields_of(pairs: list[tuple[str, Any]], room: Room) -> list[Field]:
    """Return a field for each pair. Small values get room first, so long ones cannot hide them."""
    names = [name_in(room, str(name)) for name, _ in pairs]
    texts = _texts([value for _, value in pairs])
    sizes = [len(text) + _LINE_COST * text.count("\n") for text in texts]
    shown: dict[int, Field] = {}
    for left, number in zip(
        range(len(pairs), 0, -1),
        sorted(range(len(pairs)), key=sizes.__getitem__),
        strict=True,
    ):
        share = room.part(left)
        shown[number] = Field(names[number], lines_of(texts[number], share))
        room.give_back(share)
    return [shown[number] for number in range(len(pairs))]


def _texts(values: list[Any]) -> list[str]:
    """Return the values as text. Indented JSON shares the room of one section, smallest first."""
    texts = [value if isinstance(value, str) else compact(value) for value in values]
    left = CHARACTERS
    for number in sorted(range(len(values)), key=lambda number: len(texts[number])):
        if isinstance(values[number], str) or len(texts[number]) > left:
            continue
        texts[number] = text_of(values[number], left)
        left -= len(texts[number])
    return texts
