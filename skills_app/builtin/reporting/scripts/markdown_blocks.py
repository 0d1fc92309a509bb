"""Render Markdown as HTML: headings, paragraphs, lists, tables, quotes, code, rules.

HTML in the Markdown is escaped.
"""

from __future__ import annotations

import re
from html import escape

from markdown_inline import PictureSource, inline

MAX_DEPTH = 20
"""The maximum depth of nested quotes and lists."""
_HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*([\w+-]*)")
_RULE = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*$")
_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)")
_DELIMITERS = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")


class Renderer:
    """Renders one text. `headings` has (level, text, id) of each heading, in order."""

    def __init__(self, picture: PictureSource) -> None:
        self._picture = picture
        self.headings: list[tuple[int, str, str]] = []
        self._ids: set[str] = set()

    def html(self, text: str) -> str:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4).split("\n")
        return self._blocks(lines, 0)

    def _inline(self, text: str) -> str:
        return inline(text, self._picture)

    def _blocks(self, lines: list[str], depth: int) -> str:
        if depth > MAX_DEPTH:
            return f"<pre>{escape(chr(10).join(lines))}</pre>"
        out: list[str] = []
        paragraph: list[str] = []

        def finish() -> None:
            if paragraph:
                words = "\n".join(line.lstrip() for line in paragraph).rstrip()
                out.append(f"<p>{self._inline(words)}</p>")
                paragraph.clear()

        at = 0
        while at < len(lines):
            line = lines[at]
            fence, heading = _FENCE.match(line), _HEADING.match(line)
            if not line.strip():
                finish()
                at += 1
            elif fence:
                finish()
                at = self._code(lines, at, fence, out)
            elif heading:
                finish()
                out.append(self._heading(len(heading[1]), heading[2]))
                at += 1
            elif _RULE.match(line):
                finish()
                out.append("<hr>")
                at += 1
            elif line.lstrip().startswith(">"):
                finish()
                at = self._quote(lines, at, out, depth)
            elif "|" in line and at + 1 < len(lines) and _is_table(line, lines[at + 1]):
                finish()
                at = self._table(lines, at, out)
            elif _ITEM.match(line) and (not paragraph or not line.lstrip()[0].isdigit()):
                finish()
                at = self._list(lines, at, out, depth)
            else:
                paragraph.append(line)
                at += 1
        finish()
        return "\n".join(out)

    def _heading(self, level: int, words: str) -> str:
        base = re.sub(r"[^\w]+", "-", words.casefold()).strip("-") or "section"
        name, number = base, 2
        while name in self._ids:
            name, number = f"{base}-{number}", number + 1
        self._ids.add(name)
        self.headings.append((level, words, name))
        return f'<h{level} id="{escape(name, quote=True)}">{self._inline(words)}</h{level}>'

    def _code(self, lines: list[str], at: int, fence: re.Match[str], out: list[str]) -> int:
        end = at + 1
        while end < len(lines) and not re.fullmatch(
            rf" {{0,3}}{re.escape(fence[1][0])}{{{len(fence[1])},}}\s*", lines[end]
        ):
            end += 1
        out.append(f"<pre><code>{escape(chr(10).join(lines[at + 1 : end]))}</code></pre>")
        return end + 1

    def _quote(self, lines: list[str], at: int, out: list[str], depth: int) -> int:
        inner: list[str] = []
        while (
            at < len(lines)
            and lines[at].strip()
            and (lines[at].lstrip().startswith(">") or inner[-1].strip())
        ):
            inner.append(re.sub(r"^\s*> ?", "", lines[at]))
            at += 1
        out.append(f"<blockquote>\n{self._blocks(inner, depth + 1)}\n</blockquote>")
        return at

    def _list(self, lines: list[str], at: int, out: list[str], depth: int) -> int:
        first = _ITEM.match(lines[at])
        numbered = bool(first and first[2][0].isdigit())
        items: list[str] = []
        while at < len(lines):
            found = _ITEM.match(lines[at])
            if not found or found[2][0].isdigit() != numbered or _RULE.match(lines[at]):
                break
            indent = found.end() if len(found[3]) <= 4 else found.end(2) + 1
            inner, loose = [lines[at][indent:]], False
            at += 1
            while at < len(lines):
                line = lines[at]
                if not line.strip():
                    following = next((each for each in lines[at:] if each.strip()), "")
                    if len(following) - len(following.lstrip()) < indent:
                        break
                    loose = True
                elif len(line) - len(line.lstrip()) < indent and (
                    _ITEM.match(line)
                    or _HEADING.match(line)
                    or _FENCE.match(line)
                    or not inner[-1].strip()
                ):
                    break
                inner.append(line[indent:] if line[:indent].isspace() else line.lstrip())
                at += 1
            html = self._blocks(inner, depth + 1)
            if not loose:
                html = re.sub(r"\A<p>(.*?)</p>", r"\1", html, count=1, flags=re.DOTALL)
            items.append(f"<li>{_with_box(html)}</li>")
            # A blank line between items does not end the list.
            ahead = at
            while ahead < len(lines) and not lines[ahead].strip():
                ahead += 1
            if ahead < len(lines) and _ITEM.match(lines[ahead]):
                at = ahead
        tag = "ol" if numbered else "ul"
        start = int(re.sub(r"\D", "", first[2])) if first and numbered else 1
        opening = f'<ol start="{start}">' if numbered and start != 1 else f"<{tag}>"
        out.append(opening + "\n" + "\n".join(items) + f"\n</{tag}>")
        return at

    def _table(self, lines: list[str], at: int, out: list[str]) -> int:
        header, marks = _cells(lines[at]), _cells(lines[at + 1])
        sides = [
            {(True, True): "center", (False, True): "right"}.get(
                (mark.startswith(":"), mark.endswith(":")), ""
            )
            for mark in marks
        ]
        rows = []
        at += 2
        while at < len(lines) and lines[at].strip() and "|" in lines[at]:
            rows.append(_cells(lines[at]))
            at += 1

        def cell(words: str, side: str, tag: str) -> str:
            opening = f'<{tag} class="{side}">' if side else f"<{tag}>"
            return f"{opening}{self._inline(words)}</{tag}>"

        def row(cells: list[str], tag: str) -> str:
            padded = (cells + [""] * len(header))[: len(header)]
            made = [cell(words, side, tag) for words, side in zip(padded, sides, strict=True)]
            return f"<tr>{''.join(made)}</tr>"

        body = "\n".join(row(cells, "td") for cells in rows)
        out.append(
            f"<table>\n<thead>{row(header, 'th')}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        )
        return at


def _is_table(line: str, below: str) -> bool:
    return (
        bool(_DELIMITERS.match(below)) and "-" in below and len(_cells(line)) == len(_cells(below))
    )


def _cells(line: str) -> list[str]:
    line = line.strip().removeprefix("|")
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]


def _with_box(html: str) -> str:
    """Return `html` with a box in place of `[ ]` or `[x]` at its start."""
    if html.startswith("[ ] "):
        return "☐ " + html[4:]
    return "☑ " + html[4:] if html.lower().startswith("[x] ") else html
