"""Show texts of agents, tools and people, with all hidden characters visible.

Everything here returns plain text for templates, which escape it. Nothing returns markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext

from agents.hidden_text import escaped_json, visible
from agents.review.call import fields_section
from agents.review.json_text import joined, shown_text
from agents.review.matching import LINE_STEPS, Steps, unified_lines

FOLD_CHARACTERS = 1_500
FOLD_LINES = 24
INLINE_CHARACTERS = 20_000
"""Maximum characters of one text on a page. The page links to the whole text."""

# A JSON string that was cut may end within an escape sequence.
_BROKEN_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$")


@dataclass(frozen=True)
class ShownText:
    """A text for a page.

    `size` is the number of characters of the whole text, `cut` of the omitted part. `lines` is the
    number of lines of `text`.
    """

    text: str
    size: int
    lines: int
    cut: int = 0

    @property
    def is_folded(self) -> bool:
        return self.cut > 0 or len(self.text) > FOLD_CHARACTERS or self.lines > FOLD_LINES

    @property
    def measure(self) -> str:
        """Return the length as text, or "" if the text is short."""
        if self.size <= 200 and self.lines == 1:
            return ""
        # The lines of the omitted part are not counted.
        characters = number_format(self.size, force_grouping=True)
        if self.lines == 1 or self.cut:
            return gettext("%(characters)s characters") % {"characters": characters}
        lines = number_format(self.lines, force_grouping=True)
        text = gettext("%(characters)s characters, %(lines)s lines")
        return text % {"characters": characters, "lines": lines}

    @property
    def first_line(self) -> str:
        line = self.text.strip().split("\n", 1)[0]
        return line if len(line) <= 120 else f"{line[:120]}…"


@dataclass(frozen=True)
class ShownInput:
    """A tool's input: its fields, and the whole input as JSON."""

    fields: tuple[tuple[str, ShownText], ...]
    whole: ShownText


def shown(
    text: str, *, limit: int | None = INLINE_CHARACTERS, size: int | None = None
) -> ShownText:
    """Return `text` for a page, cut after `limit` characters (None: never).

    `size` is the length of the whole text if `text` is only its start.
    """
    whole = len(text) if size is None else size
    kept = text if limit is None else text[:limit]
    return ShownText(visible(kept), whole, kept.count("\n") + 1, cut=max(0, whole - len(kept)))


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def typed(value: object) -> str:
    """Return `value` as JSON for editing, with invisible characters as JSON escapes."""
    return escaped_json(pretty(value))


def shown_input(value: object, *, limit: int | None = INLINE_CHARACTERS) -> ShownInput:
    """Return an input for a page. Only objects have fields."""
    fields = value.items() if isinstance(value, Mapping) else ()
    return ShownInput(
        tuple(
            (
                visible(str(name)),
                shown(field if isinstance(field, str) else pretty(field), limit=limit),
            )
            for name, field in fields
        ),
        shown(pretty(value), limit=limit),
    )


def decided_input(value: object) -> ShownInput:
    """Return an input for a decision: in full, or the start and the end of long texts."""
    fields = fields_section("", value).fields if isinstance(value, Mapping) else ()
    return ShownInput(
        tuple((field.name, _not_folded(joined(field.lines))) for field in fields),
        _not_folded(shown_text(value)),
    )


def _not_folded(text: str) -> ShownText:
    return ShownText(text, len(text), text.count("\n") + 1)


def shown_input_json(text: str, size: int) -> ShownInput:
    """Return an input from the journal. `text` is the start of its JSON with `size` characters."""
    if len(text) < size:
        return ShownInput((), shown(text, size=size))
    return shown_input(json.loads(text))


def shown_result_json(text: str, size: int) -> ShownText:
    """Return a result from the journal. `text` is the start of its JSON with `size` characters."""
    if len(text) == size:
        return shown(block_text(json.loads(text)))
    if text.startswith('"'):
        text = json.loads(_BROKEN_ESCAPE.sub(r"\1", text) + '"')
    return shown(text, size=max(size, len(text) + 1))


def block_text(content: str | list[dict[str, Any]]) -> str:
    """Return the content of a tool_result block as text.

    An image becomes a note with its media type, and a block of another type its JSON.
    """
    if isinstance(content, str):
        return content
    return "\n\n".join(_one_block(block) for block in content)


def _one_block(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "image":
        source = block.get("source", {})
        kind = source.get("media_type", gettext("of an unknown type"))
        return gettext("[image, %(type)s]") % {"type": kind}
    return pretty(block)


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
