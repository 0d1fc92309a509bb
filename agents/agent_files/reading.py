"""Parsing of YAML to data with line numbers. Rejects anchors, aliases, tags and duplicate keys.

A few hundred bytes of aliases can block a parser that expands them. This parser stops before that,
and checks depth and number of values while it parses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_VALUES = 20_000
_MOST_TOLD = 300

Path = tuple[str | int, ...]
"""The path to a value: names of keys, and indexes of items."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A problem in a file. `line` counts from 1; `place` is a path such as subagents.0.tools."""

    line: int
    place: str
    message: str

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"line {self.line}: {place}{self.message}"


class BadFile(Exception):
    """The file is invalid. `problems` has the problems that were found."""

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass
class Document:
    """The data of a file. `lines` has the line of each value, or of its key."""

    data: dict[str, Any]
    lines: dict[Path, int] = field(default_factory=dict)

    def line_of(self, path: Path) -> int:
        """Return the line of `path`, or of its nearest parent."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def problem(self, path: Path, message: str) -> FileProblem:
        return FileProblem(self.line_of(path), ".".join(map(str, path)), message)


def read_document(text: str) -> Document:
    """Return the one mapping in `text`. Raises `BadFile`."""
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise _bad(1, f"the file is larger than {MAX_BYTES:,} bytes")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join((error.problem or error.context or "this is no YAML").split())
        raise _bad(mark.line + 1 if mark else 1, said[:_MOST_TOLD]) from None
    except yaml.YAMLError as error:  # an invalid character
        raise _bad(1, " ".join(str(error).split())[:_MOST_TOLD]) from None
    if not isinstance(node, yaml.MappingNode):
        raise _bad(1, "the file must be a mapping: lines of `field: value`")
    document = Document({})
    document.data = _Builder(loader, document.lines).value(node, ())
    return document


def _bad(line: int, message: str) -> BadFile:
    return BadFile([FileProblem(line, "", f"{message}.")])


class _Loader(yaml.SafeLoader):
    """Composes nodes. Raises `BadFile` at the first anchor, alias or tag, and beyond a limit."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _bad(line, "anchors (&) and aliases (*) are not taken: write the value out")
        if getattr(event, "tag", None) is not None:
            raise _bad(line, f"tags are not taken: leave {event.tag} out")
        self._values += 1
        if self._values > MAX_VALUES:
            raise _bad(line, f"the file has more than {MAX_VALUES:,} values")
        if self._depth >= MAX_DEPTH:
            raise _bad(line, f"it is nested deeper than {MAX_DEPTH} levels")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


_PLAIN = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null")}


class _Builder:
    """Converts nodes to texts, numbers, booleans, null, lists, and mappings with text keys."""

    def __init__(self, loader: _Loader, lines: dict[Path, int]) -> None:
        self._loader = loader
        self._lines = lines

    def value(self, node: Any, path: Path) -> Any:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, at)) for at, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _bad(line, "a list or a mapping cannot be the name of a field: write text")
            key = _storable(key_node.value, line)
            if key in found:
                raise _bad(line, f"{key[:100]} occurs twice here: keep one")
            self._lines[(*path, key)] = line
            found[key] = self.value(value_node, (*path, key))
        return found

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        line = node.start_mark.line + 1
        if node.tag not in _PLAIN:  # also dates, which JSON does not have
            return _storable(node.value, line)
        try:
            value = self._loader.construct_object(node)
        except ValueError:
            raise _bad(line, "this number is too long: write it in quotes if it is text") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise _bad(line, "this number cannot be stored: write a finite number")
        return value


def _storable(text: str, line: int) -> str:
    if any(char == "\x00" or "\ud800" <= char <= "\udfff" for char in text):
        raise _bad(line, "this contains a NUL or half of a character: remove it")
    return text
