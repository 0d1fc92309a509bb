"""Patterns of an agent (globs and regular expressions), matched in linear time with RE2.

Python's `re` backtracks, so that `(a+)+$` from an agent would block a worker for years. RE2 also
releases the interpreter lock while it matches.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import re2  # type: ignore[import-untyped]

from sandbox.errors import InvalidRequest

_MAGIC = frozenset("*?[{")


class GlobPattern:
    """A glob pattern, compiled. `*` and `?` match within a name, and `**` spans directories.

    `[a-z]`, `[!a]` and `{a,b}` work as in bash, but `{a}` means `a`. Files with a leading dot
    match like other files.

    Attributes:
        prefix: The leading parts without wildcards, as a path.
        depth: The number of path levels below `prefix` at which a match can be. None: any number.
    """

    def __init__(self, source: str, *, split_prefix: bool = True) -> None:
        """Compile `source`. Without `split_prefix`, `prefix` is empty.

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
        """Return whether `relative`, a path below the prefix, matches as a whole."""
        return self._compiled.fullmatch(relative.encode()) is not None


def _split(source: str) -> list[str]:
    """Return the parts of a pattern between slashes, except slashes inside braces."""
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
    """Return the index of the `]` that closes a class; None if there is no such `]`.

    A `]` in first position is an ordinary member of the class.
    """
    first = start + 1 if part[start : start + 1] in ("!", "^") else start
    end = part.find("]", first + 1)
    return None if end == -1 else end


def _character_class(body: str) -> str:
    negated = body[0] in "!^"
    members = body[1:] if negated else body
    if not negated:
        members = re.sub("(.)-(.)", _range_without_slash, members)
    escaped = "".join("\\" + c if c in "\\[]^&~|" else c for c in members)
    if negated:
        return f"[^/{escaped}]"
    return f"[{escaped}]"


def _range_without_slash(match: re.Match[str]) -> str:
    low, high = match.groups()
    if not low < "/" < high:
        return match[0]
    return f"{low}-.0-{high}"


MAX_PATTERN = 1_000
_MAX_MEMORY = 1024**2
_MAX_PROGRAM = 10_000
_MAX_STEPS = 10_000_000
"""RE2's slowest path processes about 100 million (instruction, byte) steps per second."""

_MIN_BLOCK = 4 * 1024
_MAX_BLOCK = 256 * 1024


def compile_linear(source: str, *, ignore_case: bool = False, one_line: bool = False) -> Any:
    """Compile `source` to an RE2 object for bytes; with `one_line`, no match has a line break.

    Raises InvalidRequest for syntax that RE2 does not support and for patterns that are too large.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.never_capture = True
    options.never_nl = one_line
    options.case_sensitive = not ignore_case
    try:
        compiled = re2.compile(source, options)
    except re2.error as error:
        raise InvalidRequest(
            f"invalid pattern: {_message(error)}. Patterns are RE2: no look-around and no "
            "backreferences."
        ) from None
    if compiled.programsize > _MAX_PROGRAM:
        raise InvalidRequest("the pattern is too large: use smaller repetitions.")
    return compiled


class LatePattern:
    """A pattern that RE2 compiles at its first use, because compiling takes 1 to 6 ms.

    Only for patterns in Vel's own code: a wrong pattern is found late.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    @cached_property
    def _compiled(self) -> Any:
        return re2.compile(self._source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)


def require_plain(source: str) -> None:
    """Raise InvalidRequest for a pattern longer than MAX_PATTERN or with invalid Unicode."""
    if "\0" in source or any("\ud800" <= character <= "\udfff" for character in source):
        raise InvalidRequest("the pattern contains NUL or invalid Unicode. Leave it out.")
    if len(source) > MAX_PATTERN:
        raise InvalidRequest(
            f"the pattern has {len(source)} characters; at most {MAX_PATTERN} are accepted."
        )


class LinePattern:
    """A pattern for a search in lines: `^` and `$` match at the ends of each line.

    `block` is the size in bytes of the text for one search. The worst accepted pattern takes about
    half a second for a block.

    Raises:
        InvalidRequest: The pattern is invalid, too long, or contains a line break.
    """

    def __init__(self, source: str, *, ignore_case: bool = False) -> None:
        require_plain(source)
        if "\n" in source:
            raise InvalidRequest("the pattern contains a line break. grep searches single lines.")
        # Compile it without the group first: a stray `)` must not close the multi-line group.
        compile_linear(source, ignore_case=ignore_case)
        self._compiled = compile_linear(f"(?m:{source})", ignore_case=ignore_case, one_line=True)
        size = max(1, self._compiled.programsize)
        self.block = max(_MIN_BLOCK, min(_MAX_BLOCK, _MAX_STEPS // size))

    def search(self, text: bytes, start: int = 0) -> tuple[int, int] | None:
        """Return the first match at or after `start` as (start, end); None if there is no match."""
        match = self._compiled.search(text, start)
        return None if match is None else match.span()


def _message(error: Exception) -> str:
    raw = error.args[0] if error.args else ""
    return raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
