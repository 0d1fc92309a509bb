"""Markdown of a model at the terminal, while it streams.

The text is hostile: it may try to hide words from the person or to control the terminal. Control
characters are visible, and all text stays: links, images, references, HTML and entities are shown
as their source.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from string import punctuation
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.text import Text

from agents.doors.cli.terminal import visible

MOST_CHARACTERS = 8_000
"""The longest block that is read as Markdown. Some texts take quadratic time."""
PAUSE = 0.05
"""Seconds between two displays of an unfinished block."""
_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`]*)$")
_LANGUAGE = re.compile(r"^(\s*(?:`{3,}|~{3,}))[ ]*[A-Za-z0-9+#._-]{1,20}[ ]*$", re.MULTILINE)
"""The first line of fenced code, whose language is not shown."""
_HIDING = ("link", "image", "autolink", "entity", "html_inline", "html_block", "reference")
"""Rules of Markdown that hide a part of the source."""


class _Heading(Heading):
    """A heading at the left, as the other text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Faithful(Markdown):
    """Markdown without forms that hide text."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        parser = MarkdownIt().enable("strikethrough").enable("table").disable(_HIDING)
        self.markup = text
        self.parsed = parser.parse(text)


class MarkdownStream:
    """Prints each finished block of a text, and shows the unfinished one below."""

    def __init__(self) -> None:
        self._console = Console(markup=False, emoji=False, highlight=False)
        self._text = ""
        self._painted = 0
        self._painted_at = 0.0

    def feed(self, text: str) -> None:
        """Add a part of the text."""
        self._text += text
        done, rest = finished_blocks(self._text)
        if done:
            self._erase()
            self._text = rest
            self._write(block_lines(done, self._console))
            self._painted_at = 0.0
        if time.monotonic() - self._painted_at >= PAUSE:
            self._paint()

    def finish(self) -> None:
        """Print the rest of the text."""
        rest, self._text = self._text, ""
        self._erase()
        if rest.strip():
            self._write(block_lines(rest, self._console))

    def _paint(self) -> None:
        """Show the end of the unfinished block, as much as fits on the screen."""
        most = max(1, self._console.height - 2)
        lines = block_lines(self._text, self._console)[-most:] if self._text.strip() else []
        self._erase()
        self._write(lines)
        self._painted = len(lines)
        self._painted_at = time.monotonic()

    def _erase(self) -> None:
        if self._painted:
            self._console.file.write(f"\r\x1b[{self._painted}A\x1b[J")
            self._painted = 0

    def _write(self, lines: Iterable[list[Segment]]) -> None:
        # One write, so that an erased block does not flicker.
        text = "".join(f"{_rendered(line, self._console)}\n" for line in lines)
        self._console.file.write(text)
        self._console.file.flush()


def finished_blocks(text: str) -> tuple[str, str]:
    """Return the finished blocks at the start of `text`, and the rest.

    A block ends at a blank line before a line that is not indented, outside fenced code.
    """
    fence = ""
    cut = at = 0
    was_blank = False
    for line in text.splitlines(keepends=True):
        if was_blank and not fence and not line[0].isspace():
            cut = at
        found = _FENCE.match(line.rstrip("\n"))
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not found[2].strip():
            fence = ""
        was_blank = not line.strip()
        at += len(line)
    return text[:cut], text[cut:]


def block_lines(text: str, console: Console) -> list[list[Segment]]:
    """Return lines of text as they appear on the terminal, without spaces at their ends.

    A very long text, and one of which Markdown would hide a part, is shown as its source.
    """
    shown = visible(text).strip("\n")
    lines: list[list[Segment]] = []
    if len(shown) <= MOST_CHARACTERS:
        lines = console.render_lines(_Faithful(shown), pad=False)
    if not lines or _hides(shown, lines):
        lines = console.render_lines(Text(shown), pad=False)
    lines = [_stripped(line) for line in lines]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return [*lines, []]


def _hides(source: str, lines: list[list[Segment]]) -> bool:
    """Return whether characters of the source are missing, such as cells that a table lacks."""
    kept = Counter(character for line in lines for part in line for character in part.text)
    needed = Counter(_LANGUAGE.sub(r"\1", source))
    return any(
        count > kept[character]
        for character, count in needed.items()
        if not (character.isspace() or character in punctuation)
    )


def _stripped(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept:
        last = kept.pop()
        if text := last.text.rstrip():
            return [*kept, Segment(text, last.style)]
    return []


def _rendered(line: list[Segment], console: Console) -> str:
    system = console._color_system  # rich has no public name for it
    return "".join(
        segment.style.render(segment.text, color_system=system) if segment.style else segment.text
        for segment in line
    )
