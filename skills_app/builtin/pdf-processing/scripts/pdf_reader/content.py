"""Read the characters of a page with their positions, in drawing order."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from pdf_reader.document import Document
from pdf_reader.errors import PdfError
from pdf_reader.fonts import UNKNOWN, CompositeFont, Font, read_font
from pdf_reader.syntax import END, Operator, Parser, Stream

MAX_FORMS = 12
"""The maximum depth of nested forms."""
MAX_CHARACTERS = 2_000_000
MAX_OPERATIONS = 20_000_000

Matrix = tuple[float, float, float, float, float, float]
IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Character:
    """A character from `x` to `end` at height `y`, in points.

    The coordinates are in the direction of the text. `turned` is this direction: 0, 90, 180 or 270
    degrees.
    """

    text: str
    x: float
    end: float
    y: float
    size: float
    turned: int


@dataclass
class _State:
    ctm: Matrix = IDENTITY
    font: Font | CompositeFont | None = None
    size: float = 0.0
    spacing: float = 0.0
    word_spacing: float = 0.0
    scale: float = 1.0
    leading: float = 0.0
    rise: float = 0.0
    invisible: bool = False


@dataclass
class PageText:
    """The text of a page.

    `pictures` and `unknown` count parts without readable text. `problems` lists damage. `invisible`
    counts characters that are not drawn; `characters` includes them.
    """

    characters: list[Character] = field(default_factory=list)
    pictures: int = 0
    unknown: int = 0
    invisible: int = 0
    problems: list[str] = field(default_factory=list)


def multiply(a: Matrix, b: Matrix) -> Matrix:
    return (
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
        a[4] * b[0] + a[5] * b[2] + b[4],
        a[4] * b[1] + a[5] * b[3] + b[5],
    )


def read_page(document: Document, page: dict[str, Any]) -> PageText:
    """Return the text of a page. Damage ends the reading of its part and is reported."""
    reader = _Reader(document)
    turn = document.get(page, "Rotate", 0)
    angle = -math.radians(turn % 360) if isinstance(turn, int) else 0.0
    cosine, sine = round(math.cos(angle), 6), round(math.sin(angle), 6)
    content = []
    listed = document.get(page, "Contents", [])
    for part in listed if isinstance(listed, list) else [listed]:
        part = document.resolve(part)
        if isinstance(part, Stream):
            try:
                content.append(document.decoded(part))
            except PdfError as problem:
                reader.found.problems.append(str(problem))
    start = _State(ctm=(cosine, sine, -sine, cosine, 0.0, 0.0))
    reader.run(b"\n".join(content), document.get(page, "Resources", {}), start, 0)
    return reader.found


class _Reader:
    def __init__(self, document: Document) -> None:
        self.found = PageText()
        self._document = document
        self._fonts: dict[int, Font | CompositeFont] = {}
        self._operations = 0
        self._text: Matrix = IDENTITY
        self._line: Matrix = IDENTITY

    def run(self, content: bytes, resources: Any, state: _State, depth: int) -> None:
        parser = Parser(content, references=False)
        operands: list[Any] = []
        saved: list[_State] = []
        try:
            while (item := parser.next()) is not END:
                if not isinstance(item, Operator):
                    if len(operands) < 200:
                        operands.append(item)
                    continue
                self._operations += 1
                if self._operations > MAX_OPERATIONS or len(self.found.characters) > MAX_CHARACTERS:
                    raise PdfError("A page draws too many characters; the rest is left out.")
                if item == "q":
                    if len(saved) < 500:
                        saved.append(replace(state))
                elif item == "Q":
                    state = saved.pop() if saved else state
                elif item == "BI":
                    self.found.pictures += 1
                    _skip_picture(parser)
                elif item == "Do":
                    self._draw(operands, resources, state, depth)
                else:
                    self._operate(item, operands, resources, state)
                operands = []
        except PdfError as problem:
            self.found.problems.append(str(problem))

    def _operate(self, name: str, given: list[Any], resources: Any, state: _State) -> None:
        numbers = [float(each) for each in given if type(each) in (int, float)]
        if name == "cm" and len(numbers) == 6:
            state.ctm = multiply(tuple(numbers), state.ctm)  # type: ignore[arg-type]
        elif name == "BT":
            self._text = self._line = IDENTITY
        elif name == "Tf" and len(given) == 2 and numbers:
            state.font, state.size = self._font(resources, str(given[0])), numbers[0]
        elif name == "Tm" and len(numbers) == 6:
            self._text = self._line = tuple(numbers)  # type: ignore[assignment]
        elif name in ("Td", "TD") and len(numbers) == 2:
            if name == "TD":
                state.leading = -numbers[1]
            self._move(*numbers)
        elif name == "T*":
            self._move(0.0, -state.leading)
        elif name == "Tc" and numbers:
            state.spacing = numbers[0]
        elif name == "Tw" and numbers:
            state.word_spacing = numbers[0]
        elif name == "Tz" and numbers:
            state.scale = numbers[0] / 100
        elif name == "TL" and numbers:
            state.leading = numbers[0]
        elif name == "Ts" and numbers:
            state.rise = numbers[0]
        elif name == "Tr" and numbers:
            state.invisible = numbers[0] == 3
        elif name == "Tj" and given:
            self._show(given[-1:], state)
        elif name == "TJ" and given and isinstance(given[-1], list):
            self._show(given[-1], state)
        elif name in ("'", '"') and given:
            if name == '"' and len(numbers) >= 2:
                state.word_spacing, state.spacing = numbers[:2]
            self._move(0.0, -state.leading)
            self._show(given[-1:], state)

    def _move(self, x: float, y: float) -> None:
        self._line = multiply((1.0, 0.0, 0.0, 1.0, x, y), self._line)
        self._text = self._line

    def _font(self, resources: Any, name: str) -> Font | CompositeFont:
        fonts = self._document.get(resources, "Font", {})
        head = self._document.resolve(fonts.get(name)) if isinstance(fonts, dict) else None
        key = id(head)
        if head is None or key not in self._fonts:
            self._fonts[key] = read_font(self._document, head)
        return self._fonts[key]

    def _show(self, parts: list[Any], state: _State) -> None:
        if state.font is None:
            return
        for part in parts:
            if isinstance(part, bytes):
                for glyph in state.font.glyphs(part):
                    advance = glyph.width / 1000 * state.size + state.spacing
                    if glyph.is_space:
                        advance += state.word_spacing
                    self._place(glyph.text, glyph.width / 1000 * state.size, advance, state)
            elif isinstance(part, (int, float)):
                self._advance(-part / 1000 * state.size, state)

    def _advance(self, by: float, state: _State) -> None:
        x, y = (0.0, -by) if state.font and state.font.vertical else (by * state.scale, 0.0)
        self._text = multiply((1.0, 0.0, 0.0, 1.0, x, y), self._text)

    def _place(self, text: str, width: float, advance: float, state: _State) -> None:
        a, b, c, d, x, y = multiply(self._text, state.ctm)
        self._advance(advance, state)
        if not text:
            return
        if text == UNKNOWN:
            self.found.unknown += 1
        if state.invisible and text.strip():
            self.found.invisible += 1
        turned = round(math.degrees(math.atan2(b, a)) / 90) % 4 * 90
        x, y = x + c * state.rise, y + d * state.rise
        length = math.hypot(a, b) * width * state.scale
        size = abs(state.size) * (math.hypot(c, d) or math.hypot(a, b))
        along = {0: (x, y), 90: (y, -x), 180: (-x, -y), 270: (-y, x)}[turned]
        if not all(math.isfinite(each) and abs(each) < 1e7 for each in (*along, length, size)):
            return
        self.found.characters.append(
            Character(text, along[0], along[0] + length, along[1], size, turned)
        )

    def _draw(self, given: list[Any], resources: Any, state: _State, depth: int) -> None:
        objects = self._document.get(resources, "XObject", {})
        drawn = self._document.get(objects, str(given[-1])) if given else None
        if not isinstance(drawn, Stream):
            return
        kind = self._document.get(drawn, "Subtype")
        if kind == "Image":
            self.found.pictures += 1
        elif kind == "Form" and depth < MAX_FORMS:
            inner = replace(state)
            matrix = self._document.get(drawn, "Matrix", [])
            matrix = [self._document.resolve(each) for each in matrix]
            if len(matrix) == 6 and all(isinstance(each, (int, float)) for each in matrix):
                inner.ctm = multiply(tuple(float(each) for each in matrix), inner.ctm)  # type: ignore[arg-type]
            text, line = self._text, self._line
            own = self._document.get(drawn, "Resources", resources)
            self.run(self._document.decoded(drawn), own, inner, depth + 1)
            self._text, self._line = text, line


def _skip_picture(parser: Parser) -> None:
    """Move the parser behind the `EI` of an inline picture, whose bytes may resemble operators."""
    while (item := parser.next()) is not END and item != "ID":
        pass
    at = parser.position + 1
    while True:
        at = parser.data.find(b"EI", at)
        if at < 0:
            parser.position = len(parser.data)
            return
        before, after = parser.data[at - 1 : at], parser.data[at + 2 : at + 3]
        if before in (b"\n", b"\r", b" ") and (not after or after in b"\n\r \tQ"):
            rest = parser.data[at + 2 : at + 12]
            if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in rest):
                parser.position = at + 2
                return
        at += 2
