"""Conditions on commands: RE2 expressions.

A denial by pattern is a convenience: a shell has endless ways to write a command, and a program
that the agent wrote can do anything. The sandbox is the boundary.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from sandbox.backends.regex import compile_linear
from sandbox.errors import InvalidRequest as InvalidPattern
from sandbox.normal_form import normal_form

_OPERATORS = frozenset(";&|<>`$(){}\\\n\r")
"""What can make one command into several, or into another than it reads."""
_UNREADABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})

_JOINED_LINE = re.compile(r"\\\r?\n")
_FIELD_SEPARATOR = re.compile(r"\$IFS|\$\{IFS[^}]{0,40}\}|\$'\\[tn]'")
_QUOTING = re.compile(r"[\"'\\]|\$(?=[\"'])|\$[@*]")
_BLANKS = re.compile(r"[ \t\f\v\xa0]+")
_SEPARATORS = re.compile(r"[;&|(){}`]|\$\(")


def check_expression(source: str) -> None:
    """Raises `InvalidPattern` for what RE2 does not take."""
    if "\0" in source or not _is_unicode(source):
        raise InvalidPattern("the pattern holds NUL or invalid Unicode. Leave it out.")
    _whole(source)
    _anywhere(source)


def exactly(command: str) -> str:
    """The expression that only `command` fits."""
    return str(re2.escape(command))


def permits(source: str, command: str) -> bool:
    """Whether all of `command` fits, and is one plain command.

    An expression that is written out, and so names one command only, fits that one whatever is
    in it.
    """
    if not _is_unicode(command):
        return False
    if source in (command, exactly(command)):
        return True
    if any(_is_doubtful(character) for character in command):
        return False
    return _whole(source).fullmatch(command.encode()) is not None


def occurs(source: str, command: str) -> bool:
    """Whether something in `command` fits, as it stands or with what only disguises it removed."""
    expression = _anywhere(source)
    return any(expression.search(view.encode(errors="replace")) for view in _views(command))


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _is_doubtful(character: str) -> bool:
    if character in _OPERATORS:
        return True
    return unicodedata.category(character) in _UNREADABLE and character not in " \t"


def _views(command: str) -> list[str]:
    joined = _JOINED_LINE.sub("", command)
    plain = _QUOTING.sub("", _FIELD_SEPARATOR.sub(" ", joined))
    lines = (_BLANKS.sub(" ", line).strip() for line in _SEPARATORS.sub("\n", plain).splitlines())
    found = [
        command,
        _BLANKS.sub(" ", plain),
        " ".join(plain.split()),
        "\n".join(lines),
        normal_form("NFKC", plain),
    ]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1024)
def _whole(source: str) -> Any:
    return compile_linear(source)


@lru_cache(maxsize=1024)
def _anywhere(source: str) -> Any:
    """`^` and `$` are the ends of any line: of each command, in the view that separates them."""
    _whole(source)  # alone first: a stray `)` must not close the group
    return compile_linear(f"(?ms:{source})")
