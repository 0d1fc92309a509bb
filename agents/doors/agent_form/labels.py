"""Labels and help of fields for people, in the language of the page.

They come from the definitions of options, whose English texts are also part of the JSON Schema.
`make translations` collects them.
"""

from __future__ import annotations

from django.utils.functional import lazy
from django.utils.translation import pgettext

CONTEXT = "option"
"""The context of these texts in the catalogs."""
_WORDS = {"mcp": "MCP", "sha256": "SHA-256"}


def label_of(name: str) -> str:
    """Return the label of a field: `mcp_tool` is "MCP tool"."""
    return option_text(english_label(name))


lazy_label = lazy(label_of, str)
"""The same, translated on display. The history of the admin stores the English labels."""


def english_label(name: str) -> str:
    """Return the label of a field in English."""
    first, *rest = (_WORDS.get(word, word) for word in name.split("_"))
    return " ".join([first[:1].upper() + first[1:], *rest])


def option_text(text: str) -> str:
    """Return the translation of a text of an option: its help, a choice, or a title."""
    return pgettext(CONTEXT, text) if text else ""
