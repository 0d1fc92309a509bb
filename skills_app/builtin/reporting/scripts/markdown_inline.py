"""Render the text of a line as HTML. Everything except the tags of this module is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

PictureSource = Callable[[str], str]
"""Returns the address of a picture in the HTML for that in the Markdown; "" if it is missing."""

_CODE = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~<>])")
_PICTURE = re.compile(
    r"!\[([^\]]*)\]\(\s*<?([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)"
)
_LINK = re.compile(
    r"\[([^\]]+)\]\(\s*<?([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)"
)
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]+)>")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", re.DOTALL)
_EMPHASIS = re.compile(
    r"(?<![\w*])\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?![\w*])|(?<!\w)_(?=\S)(.+?)(?<=\S)_(?!\w)",
    re.DOTALL,
)
_STRUCK = re.compile(r"~~(?=\S)(.+?)(?<=\S)~~", re.DOTALL)
_SAFE = re.compile(r"(?:https?://|mailto:|#)", re.IGNORECASE)
_KEPT = re.compile("\ue000(\\d+)\ue001")
_MARKS = re.compile("[\ue000\ue001]")


def inline(text: str, picture: PictureSource) -> str:
    """Return `text` as HTML. Only links to http, https, mailto and `#…` stay links."""
    kept: list[str] = []

    def keep(html: str) -> str:
        # Replace finished HTML by a mark, so that it is not parsed as Markdown.
        kept.append(html)
        return f"\ue000{len(kept) - 1}\ue001"

    def code(found: re.Match[str]) -> str:
        return keep(f"<code>{escape(found[2].strip())}</code>")

    def image(found: re.Match[str]) -> str:
        source = picture(found[2])
        words = escape(found[1], quote=True)
        if not source:
            return keep(f"<em>[picture missing: {words}]</em>")
        return keep(f'<img src="{escape(source, quote=True)}" alt="{words}">')

    def link(found: re.Match[str]) -> str:
        if not _SAFE.match(found[2]):
            return f"{found[1]} ({keep(f'<code>{escape(found[2])}</code>')})"
        opening = keep(f'<a href="{escape(found[2], quote=True)}" rel="noopener noreferrer">')
        return f"{opening}{found[1]}{keep('</a>')}"

    def address(found: re.Match[str]) -> str:
        shown = escape(found[1], quote=True)
        return keep(f'<a href="{shown}" rel="noopener noreferrer">{shown}</a>')

    text = _MARKS.sub("\ufffd", text)
    text = _CODE.sub(code, text)
    text = _ESCAPED.sub(lambda found: keep(escape(found[1])), text)
    text = _PICTURE.sub(image, text)
    text = _LINK.sub(link, text)
    text = _AUTOLINK.sub(address, text)
    text = escape(text, quote=False)
    text = _STRONG.sub(r"<strong>\2</strong>", text)
    text = _EMPHASIS.sub(lambda found: f"<em>{found[1] or found[2]}</em>", text)
    text = _STRUCK.sub(r"<del>\1</del>", text)
    text = re.sub(r"(?: {2,}|\\)\n", "<br>\n", text)
    while _KEPT.search(text):
        text = _KEPT.sub(lambda found: kept[int(found[1])], text)
    return text
