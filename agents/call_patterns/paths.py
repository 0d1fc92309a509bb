"""Conditions on paths: `*` matches within a name, `**` as a part matches any number of directories.

A relative pattern is relative to the directory in which relative paths start. Only to ask or to
deny, one that starts with `**` is relative to `/`. To ask or to deny, case is ignored, and a search
above a matching path matches, too. Paths are compared as text, in the canonical form of the file
tools. File tools follow no links, but programs in the sandbox do.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from agents.call_patterns.fields import any_values, holds_path, whole_values
from agents.call_patterns.steps import FEW_WILDCARDS, Steps
from agents.kernel.mounts import mount_of_tool
from sandbox.backends.names import meant
from sandbox.backends.patterns import compile_linear
from sandbox.errors import InvalidRequest as InvalidPattern
from sandbox.errors import PathRefused
from sandbox.paths import MAX_PATH_BYTES, WORKING_DIR, normalise, resolve_workspace_path

_DEFAULTS = {"ls": ".", "grep": ".", "glob": "."}
"""The default paths of file tools."""
_DEEP_TOOLS = frozenset({"grep", "glob"})
"""These tools read everything below their path."""
_ANY_PARTS = "(?:/[^/]+)*"
_MAGIC = frozenset("*?[{")
_LONGEST = 10 * 2 * MAX_PATH_BYTES
"""Maximum characters of a path, all written as escapes."""


def check_pattern(pattern: str) -> None:
    """Raise `InvalidPattern` if the pattern is not valid."""
    if "\0" in pattern or any("\ud800" <= character <= "\udfff" for character in pattern):
        raise InvalidPattern("the pattern holds NUL or invalid Unicode. Leave it out.")
    if ".." in pattern.split("/"):
        raise InvalidPattern("a pattern cannot hold `..`. Write the path that it leads to.")
    if pattern == "~" or pattern.startswith("~/"):
        raise InvalidPattern("there is no home directory here. Write the path without `~/`.")
    _compiled(pattern, WORKING_DIR, False)
    _above(pattern, WORKING_DIR)


class PathReading:
    """The paths of one call in canonical form, parsed once for all patterns."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._canonical: dict[tuple[str, str], str | None] = {}

    def permits(self, pattern: str, tool: str, tool_input: Any, *, sandbox: bool) -> bool:
        """Return whether the call has paths and each matches. Raises `TooMuchToRead`."""
        named = _named(tool, tool_input)
        if not named:
            return False
        expression = _compiled(pattern, _start(tool, sandbox), False)
        return all(
            path is not None and self._fits(expression, pattern, path)
            for path in self._each(named, tool, sandbox)
        )

    def occurs(self, pattern: str, tool: str, tool_input: Any, *, sandbox: bool) -> bool:
        """Return whether a path matches, ignoring case, or a search covers a matching path.

        Raises `TooMuchToRead`.
        """
        start = "/" if pattern.startswith("**") else _start(tool, sandbox)
        expression = _compiled(pattern, start, True)
        named = [*any_values(tool_input, holds_path), *_unnamed(tool, tool_input)]
        for path in self._each(named, tool, sandbox):
            if path is None:
                return True  # file tools refuse it, and other meanings must not pass
            if self._fits(expression, pattern, path):
                return True
            if tool in _DEEP_TOOLS and self._fits(_above(pattern, start), pattern, path):
                return True
        return False

    def _each(self, named: list[str], tool: str, sandbox: bool) -> Iterator[str | None]:
        for name in dict.fromkeys(named):
            key = (tool, name)
            if key not in self._canonical:
                self._canonical[key] = _canonical(name, tool, sandbox)
            yield self._canonical[key]

    def _fits(self, expression: Any, pattern: str, path: str) -> bool:
        simple = pattern.count("*") <= FEW_WILDCARDS
        return self._steps.fullmatch(expression, path.encode(), simple=simple)


def named_paths(tool: str, tool_input: Any) -> list[str]:
    """Return the paths of a call, for a person who permits them. Empty if they are unclear."""
    return _named(tool, tool_input) or []


def _named(tool: str, tool_input: Any) -> list[str] | None:
    if isinstance(tool_input, Mapping) and _default(tool) is not None:
        tool_input = {name: value for name, value in tool_input.items() if value is not None}
    named = whole_values(tool_input, holds_path)
    return None if named is None else named + _unnamed(tool, tool_input)


def _unnamed(tool: str, tool_input: Any) -> list[str]:
    """Return the paths that a call uses without a field for them."""
    found = []
    given = tool_input if isinstance(tool_input, Mapping) else {}
    fields = [name for name, value in given.items() if holds_path(name) and value is not None]
    default = _default(tool)
    if default is not None and not fields:
        found.append(default)
    pattern = given.get("pattern")
    if tool == "glob" and isinstance(pattern, str):
        found += _places_of_glob(pattern, given.get("path"))
    return found


def _places_of_glob(pattern: str, path: object) -> list[str]:
    parts = pattern.split("/")
    fixed = next((n for n, part in enumerate(parts) if _MAGIC & set(part)), len(parts))
    place = "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else ".")
    base = path if isinstance(path, str) else "."
    return [posixpath.join(base, place)]


def _default(tool: str) -> str | None:
    """Return the default path of a tool, or None."""
    mount = mount_of_tool(tool)
    return _DEFAULTS.get(tool) if mount is None else mount.tools[tool]


def _start(tool: str, sandbox: bool) -> str:
    if (mount := mount_of_tool(tool)) is not None:
        return mount.root
    return WORKING_DIR if sandbox else "/"


def _canonical(path: str, tool: str, sandbox: bool) -> str | None:
    start = _start(tool, sandbox)
    if len(path) > _LONGEST:
        return None
    try:
        absolute = normalise(meant(path), start)
        if start != WORKING_DIR:
            return absolute
        try:
            return resolve_workspace_path(absolute)
        except PathRefused:
            return absolute  # a mount next to the workspace, or a missing path
    except PathRefused:
        return None


@lru_cache(maxsize=1024)
def _above(pattern: str, start: str) -> Any:
    """Return the expression of the directories that can contain a matching path, in any case."""
    expression = ""
    for part in reversed(_parts(pattern, start)):
        if part == "**":
            expression = f"{_ANY_PARTS}{expression}"
        else:
            expression = f"(?:/{_name(part)}{expression})?"
    return compile_linear(f"(?s:/|{expression})", ignore_case=True)


def _parts(pattern: str, start: str) -> list[str]:
    absolute = posixpath.join(start, pattern)
    parts = [part for part in absolute.split("/") if part not in ("", ".")]
    if start == WORKING_DIR and parts[:1] == ["skills"]:
        parts.insert(0, "sandbox")
    return parts


@lru_cache(maxsize=1024)
def _compiled(pattern: str, start: str, any_case: bool) -> Any:
    expression = ""
    for part in _parts(pattern, start):
        expression += _ANY_PARTS if part == "**" else "/" + _name(part)
    return compile_linear(f"(?s:{expression or '/'})", ignore_case=any_case)


def _name(part: str) -> str:
    return "[^/]*".join(str(re2.escape(text)) for text in part.split("*"))
