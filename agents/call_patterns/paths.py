"""Conditions on paths: `*` stays within a name, a part `**` stands for any number of directories.

A pattern that is not absolute starts where relative paths do; to ask or to deny, one that begins
with `**` is meant anywhere.

Paths are compared as text, as the file tools make them canonical. The file tools follow no link;
a program in the sandbox does.
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
from sandbox.backends.regex import compile_linear
from sandbox.errors import InvalidRequest as InvalidPattern
from sandbox.errors import PathRefused
from sandbox.paths import MAX_PATH_BYTES, WORKING_DIR, is_within, normalise, resolve_workspace_path

_DEFAULTS = {"ls": ".", "grep": ".", "glob": "."}
"""Where file tools look that are not told where."""
_DEEP_TOOLS = frozenset({"grep", "glob"})
"""They read everything below the path that they are given."""
_MAGIC = frozenset("*?[{")
_LONGEST = 10 * 2 * MAX_PATH_BYTES
"""Characters of the longest path that may be taken, all written as escapes."""


def check_pattern(pattern: str) -> None:
    """Raises `InvalidPattern`."""
    if "\0" in pattern or any("\ud800" <= character <= "\udfff" for character in pattern):
        raise InvalidPattern("the pattern holds NUL or invalid Unicode. Leave it out.")
    if ".." in pattern.split("/"):
        raise InvalidPattern("a pattern cannot hold `..`. Write the path that it leads to.")
    if pattern == "~" or pattern.startswith("~/"):
        raise InvalidPattern("there is no home directory here. Write the path without `~/`.")
    _compiled(pattern, WORKING_DIR, False)


class PathReading:
    """The paths of one call in their canonical form, made once for all patterns."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._canonical: dict[tuple[str, str], str | None] = {}

    def permits(self, pattern: str, tool: str, tool_input: Any, *, sandbox: bool) -> bool:
        """Whether the call names paths and each fits. Raises `TooMuchToRead`."""
        named = _named(tool, tool_input)
        if not named:
            return False
        expression = _compiled(pattern, _start(tool, sandbox), False)
        return all(
            path is not None and self._fits(expression, pattern, path)
            for path in self._each(named, tool, sandbox)
        )

    def occurs(self, pattern: str, tool: str, tool_input: Any, *, sandbox: bool) -> bool:
        """Whether any path fits, in upper or lower case, or what a search goes through.

        Raises `TooMuchToRead`.
        """
        start = "/" if pattern.startswith("**") else _start(tool, sandbox)
        expression = _compiled(pattern, start, True)
        named = [*any_values(tool_input, holds_path), *_unnamed(tool, tool_input)]
        for path in self._each(named, tool, sandbox):
            if path is None:
                return True  # no file tool takes it; whatever else it may mean is not let through
            if self._fits(expression, pattern, path):
                return True
            if tool in _DEEP_TOOLS and is_within(_literal(pattern, start), path):
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
    """The paths that a call names, for a person who allows them; empty where that is unclear."""
    return _named(tool, tool_input) or []


def _named(tool: str, tool_input: Any) -> list[str] | None:
    if isinstance(tool_input, Mapping) and _default(tool) is not None:
        tool_input = {name: value for name, value in tool_input.items() if value is not None}
    named = whole_values(tool_input, holds_path)
    return None if named is None else named + _unnamed(tool, tool_input)


def _unnamed(tool: str, tool_input: Any) -> list[str]:
    """Paths that a call means without a field for them."""
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
    """The path of a tool that is called without one, as far as it has one."""
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
            return absolute  # a mount beside the workspace, or nothing at all
    except PathRefused:
        return None


@lru_cache(maxsize=1024)
def _literal(pattern: str, start: str) -> str:
    """The directory above the first wildcard, or the whole path."""
    parts = _parts(pattern, start)
    fixed = next((n for n, part in enumerate(parts) if "*" in part), len(parts))
    return "/" + "/".join(parts[:fixed])


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
        if part == "**":
            expression += "(?:/[^/]+)*"
        else:
            expression += "/" + "[^/]*".join(str(re2.escape(text)) for text in part.split("*"))
    return compile_linear(f"(?s:{expression or '/'})", ignore_case=any_case)
