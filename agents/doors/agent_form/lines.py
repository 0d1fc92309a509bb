"""A field for a list of short texts: one text on each line."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.doors.admin.json_input import JsonText, parse_json
from agents.hidden_text import escaped_text, unescaped_text


class LinesField(JsonText):
    """A list of texts. Its text has one of them on each line, or is the list as JSON.

    With `is_optional`, an empty text is None, and the text `[]` is an empty list.
    """

    widget = forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "vel-json"})

    def __init__(self, *, is_optional: bool = False, **options: Any) -> None:
        super().__init__(empty=None if is_optional else [], **options)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            if not value and self.empty is None:
                return "[]"
            return "\n".join(escaped_text(str(each)) for each in value)
        return value

    def to_python(self, value: Any) -> Any:
        text = forms.CharField.to_python(self, value) or ""
        if _is_list(text):
            return parse_json(text)
        lines = (unescaped_text(line.strip()) for line in text.splitlines())
        return [line for line in lines if line] or self.empty

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != (initial if initial is None else list(initial)))
        except ValidationError:
            return True


def _is_list(text: str) -> bool:
    """Return whether `text` is a JSON list, and not an address such as [::1]."""
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False
