"""Reads gettext catalogs (.po), so that checks of them need no GNU gettext."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, str]
"""The context, or "", and the English text."""

_PART = re.compile(r'(?P<name>msgctxt|msgid_plural|msgid|msgstr)(?:\[\d+\])? (?P<text>".*")')


@dataclass
class Message:
    """A text: the singular and, if it has one, the plural, with their translations."""

    texts: list[str] = field(default_factory=list)
    translations: list[str] = field(default_factory=list)
    is_fuzzy: bool = False


def read_catalog(path: Path) -> dict[Key, Message]:
    """Return the messages of a catalog, without its header."""
    found: dict[Key, Message] = {}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        message, context, parts = Message(), [""], list[str]()
        places = {
            "msgctxt": context,
            "msgid": message.texts,
            "msgid_plural": message.texts,
            "msgstr": message.translations,
        }
        for line in block.strip().splitlines():
            if line.startswith("#"):
                message.is_fuzzy |= line.startswith("#,") and "fuzzy" in line
            elif match := _PART.fullmatch(line):
                parts = places[match["name"]]
                parts.append(ast.literal_eval(match["text"]))
            else:
                parts[-1] += ast.literal_eval(line)
        if message.texts and message.texts[0]:
            found[context[-1], message.texts[0]] = message
    return found
