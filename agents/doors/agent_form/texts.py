"""A field for a text with several lines."""

from __future__ import annotations

from typing import Any

from django import forms


class LongText(forms.CharField):
    """A text with the line breaks of Vel. Browsers send line breaks as CR LF."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value) or "").replace("\r\n", "\n")
