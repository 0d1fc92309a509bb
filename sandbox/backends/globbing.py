"""Compile an agent's glob patterns to a linear-time matcher."""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

from sandbox.backends.regex import compile_linear, require_plain
from sandbox.errors import InvalidRequest

_MAGIC = frozenset("*?[{")


class GlobPattern:
    """`*` and `?` match within a name, `**` spans directories; `[a-z]`, `[!a]`, `{a,b}` work.

    Dot files match like other files. `prefix` is the leading parts without wildcards, `depth` the
    number of levels below it that can match (None: any number).
    """

    def __init__(self, source: str, *, split_prefix: bool = True) -> None:
        """Without `split_prefix`, the prefix is empty and the leading parts are matched as well.

        Raises InvalidRequest for `..` and for patterns that are too long or empty.
        """
        require_plain(source)
        parts = [part for part in _split(source) if part not in ("", ".")]
        if not parts:
            raise InvalidRequest("the pattern is empty. Use for example **/*.md.")
        if ".." in parts:
            raise InvalidRequest("a pattern cannot contain `..`. Give the directory as path.")
        literal = 0
        while split_prefix and literal < len(parts) - 1 and not _MAGIC & set(parts[literal]):
            literal += 1
        self.prefix = "/".join(parts[:literal])
        self.parts = tuple(parts)
        rest = parts[literal:]
        deep = any(part == "**" or "/" in part for part in rest)
        self.depth = None if deep else len(rest)
        self._compiled = compile_linear(f"(?s:{_expression(rest)})")

    def matches(self, relative: str) -> bool:
        """Whether `relative`, a path below the prefix, matches as a whole."""
        return self._compiled.fullmatch(relative.encode()) is not None


def _split(source: str) -> list[str]:
    """Split at slashes that are not inside braces."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(source):
        if character == "{":
            depth += 1
        elif character == "}":
            depth = max(0, depth - 1)
        elif character == "/" and depth == 0:
            parts.append(source[start:index])
            start = index + 1
    parts.append(source[start:])
    if depth:  # an unclosed brace is an ordinary character
        return source.split("/")
    return parts


def _expression(parts: list[str]) -> str:
    result = []
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            result.append(".*" if last else "(?:[^/]+/)*")
        else:
            result.append(_translate(part) + ("" if last else "/"))
    return "".join(result)


def _translate(part: str) -> str:
    result: list[str] = []
    index, braces = 0, 0
    balanced = part.count("{") == part.count("}")
    while index < len(part):
        character = part[index]
        index += 1
        if character == "*":
            if not result or result[-1] != "[^/]*":
                result.append("[^/]*")
        elif character == "?":
            result.append("[^/]")
        elif character == "[" and (end := _class_end(part, index)) is not None:
            result.append(_character_class(part[index:end]))
            index = end + 1
        elif character == "{" and balanced:
            braces += 1
            result.append("(?:")
        elif character == "}" and braces:
            braces -= 1
            result.append(")")
        elif character == "," and braces:
            result.append("|")
        else:
            result.append(re2.escape(character))
    return "".join(result) + ")" * braces


def _class_end(part: str, start: int) -> int | None:
    """The index of the `]` that closes a class. A `]` in first position is an ordinary member."""
    first = start + 1 if part[start : start + 1] in ("!", "^") else start
    end = part.find("]", first + 1)
    return None if end == -1 else end


def _character_class(body: str) -> str:
    negated = body[0] in "!^"
    members = body[1:] if negated else body
    escaped = "".join("\\" + c if c in "\\[]^&~|" else c for c in members)
    if negated:
        return f"[^/{escaped}]"
    return f"[{escaped}]"
