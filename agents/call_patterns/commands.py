"""Conditions on commands: RE2 expressions.

To deny by pattern is only a convenience: a shell has endless ways to write a command, and a program
of the agent can do anything. The sandbox is the boundary.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from agents.call_patterns.steps import Steps, TooMuchToRead
from sandbox.backends.normal_form import normal_form
from sandbox.backends.patterns import compile_linear
from sandbox.errors import InvalidRequest as InvalidPattern

_OPERATORS = frozenset(";&|<>`$(){}\\\n\r")
"""Characters that can split a command into several, or change its meaning."""
_UNREADABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})

_JOINED_LINE = re.compile(r"\\\r?\n")
_FIELD_SEPARATOR = re.compile(r"\$IFS|\$\{IFS[^}]{0,40}\}|\$'\\[tn]'")
_QUOTING = re.compile(r"[\"'\\]|\$(?=[\"'])|\$[@*]")
_BLANKS = re.compile(r"[ \t\f\v\xa0]+")
_SEPARATORS = re.compile(r"[;&|(){}`]|\$\(")
_MEANING = re.compile(r"[.\[\\(?*+]")
_FEW_SIGNS = 10

_PIECE = 64 * 1024
_LONGEST_PIECE = 512 * 1024
_MOST_BYTES = 24_000_000
"""Limit for all views of a command. Some characters expand to eighteen."""
_CUT = re.compile(r"[^$\\]{50}[A-Za-z0-9](?=[A-Za-z0-9])")


def check_expression(source: str) -> None:
    """Raise `InvalidPattern` for an expression that RE2 does not accept."""
    if "\0" in source or not _is_unicode(source):
        raise InvalidPattern("the pattern holds NUL or invalid Unicode. Leave it out.")
    _whole(source)
    _anywhere(source)


def exactly(command: str) -> str:
    """Return an expression that matches only `command`."""
    return str(re2.escape(command))


class CommandReading:
    """The commands of one call, parsed once for all expressions."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._views: dict[str, list[bytes]] = {}
        self._plain: dict[str, bool] = {}

    def permits(self, source: str, command: str) -> bool:
        """Return whether `command` matches as a whole and is one plain command.

        An expression that is fully literal matches its command even with special characters. Raises
        `TooMuchToRead`.
        """
        if not _is_unicode(command):
            return False
        if source == command or (len(source) >= len(command) and source == exactly(command)):
            return True
        if command not in self._plain:
            self._plain[command] = _is_plain(command)
        if not self._plain[command]:
            return False
        expression, data = _whole(source), command.encode()
        return self._steps.fullmatch(expression, data, simple=_is_simple(source))

    def occurs(self, source: str, command: str) -> bool:
        """Return whether a part of `command` matches, as written or without obfuscation.

        Raises `TooMuchToRead`.
        """
        if command not in self._views:
            self._views[command] = _views(command)
        expression, simple = _anywhere(source), _is_simple(source)
        views = self._views[command]
        return any(self._steps.search(expression, view, simple=simple) for view in views)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plain(command: str) -> bool:
    pieces = (command[at : at + _PIECE] for at in range(0, len(command), _PIECE))
    return not any(_is_doubtful(character) for piece in pieces for character in set(piece))


def _is_doubtful(character: str) -> bool:
    if character in _OPERATORS:
        return True
    return unicodedata.category(character) in _UNREADABLE and character not in " \t"


def _is_simple(source: str) -> bool:
    """Return whether the expression has few states, for any length of the text."""
    return "{" not in source and len(_MEANING.findall(source)) <= _FEW_SIGNS


def _views(command: str) -> list[bytes]:
    """Return the views of a command. Raises `TooMuchToRead`."""
    pieces: list[list[bytes]] = [[], [], [], [], []]
    size = 0
    for piece in _pieces(command):
        for found, view in zip(pieces, _views_of_piece(piece), strict=True):
            found.append(view.encode(errors="replace"))
            size += len(found[-1])
        if size > _MOST_BYTES:
            raise TooMuchToRead
    return list(dict.fromkeys(map(b"".join, pieces)))


def _views_of_piece(command: str) -> tuple[str, ...]:
    joined = _JOINED_LINE.sub("", command)
    plain = _QUOTING.sub("", _FIELD_SEPARATOR.sub(" ", joined))
    lines = (_BLANKS.sub(" ", line).strip() for line in _SEPARATORS.sub("\n", plain).splitlines())
    return (
        command,
        _BLANKS.sub(" ", plain),
        " ".join(plain.split()),
        "\n".join(lines),
        normal_form("NFKC", plain),
    )


def _pieces(command: str) -> Iterator[str]:
    """Yield parts that have the same views as the whole: cuts are in words, away from special text.

    Raises `TooMuchToRead`.
    """
    start = 0
    while start < len(command):
        cut = None
        if len(command) - start > _PIECE:
            cut = _CUT.search(command, start + _PIECE, start + _LONGEST_PIECE)
        end = len(command) if cut is None else cut.end()
        if end - start > _LONGEST_PIECE:
            raise TooMuchToRead
        yield command[start:end]
        start = end


@lru_cache(maxsize=1024)
def _whole(source: str) -> Any:
    return compile_linear(source)


@lru_cache(maxsize=1024)
def _anywhere(source: str) -> Any:
    """Compile an expression for a search. `^` and `$` match at lines: each command in one view."""
    _whole(source)  # first without the group: a stray `)` must not close it
    return compile_linear(f"(?ms:{source})")
