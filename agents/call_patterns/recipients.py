"""Conditions on recipients: `ann@example.org`, `*@example.org`, `*@*.example.org`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from agents.call_patterns.fields import any_values, holds_recipient, whole_values
from agents.call_patterns.steps import FEW_WILDCARDS, Steps, TooMuchToRead
from sandbox.backends.patterns import LatePattern, compile_linear
from sandbox.errors import InvalidRequest as InvalidPattern

_PATTERN = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9*-]+(\.[a-z0-9*-]+)*")
_PLAIN = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_OUTSIDE = r"""\s<>,;:"()\[\]@"""
_ENCODED = "xn--"
"""The prefix of a label in ASCII for a label with other letters."""
_PART = rf"[^{_OUTSIDE}]"
_INTERNATIONAL = LatePattern(rf"({_PART}+)@({_PART}*[\x{{80}}-\x{{10ffff}}]{_PART}*)")
_MOST_LETTERS = 50_000
"""Maximum characters of international domains that one call converts to ASCII."""
_LONGEST = 1_000
"""Maximum characters of an address."""


def check_pattern(pattern: str) -> None:
    """Raise `InvalidPattern` if the pattern is not valid."""
    if not _PATTERN.fullmatch(pattern.lower()):
        raise InvalidPattern("write an address, as ann@example.org or *@example.org.")


def permits(pattern: str, tool_input: Any, steps: Steps) -> bool:
    """Return whether the call has recipients, each is a plain address, and each matches.

    Raises `TooMuchToRead`.
    """
    if not isinstance(tool_input, Mapping):
        return False
    # An empty list of copies has no recipients.
    given = {name: value for name, value in tool_input.items() if value != []}
    named = whole_values(given, holds_recipient)
    if not named:
        return False
    expression, simple = _compiled(pattern), _is_simple(pattern)
    return all(
        len(text) <= _LONGEST
        and _PLAIN.fullmatch(text) is not None
        and steps.fullmatch(expression, text.lower().encode(), simple=simple)
        for text in named
    )


def occurs(pattern: str, tool_input: Any, steps: Steps) -> bool:
    """Return whether a recipient in any notation matches. Raises `TooMuchToRead`."""
    named = "\n".join(any_values(tool_input, holds_recipient)).encode(errors="replace")
    expression, simple = _anywhere(pattern), _is_simple(pattern)
    if steps.search(expression, named, simple=simple):
        return True
    if _ENCODED not in pattern.lower():
        return False
    return steps.search(expression, _in_ascii(named, steps), simple=simple)


def _in_ascii(named: bytes, steps: Steps) -> bytes:
    """Return the addresses with a domain that is not ASCII, one per line, in ASCII form.

    `named` has all recipients. Raises `TooMuchToRead`.
    """
    steps.take(len(named))
    found = []
    letters = 0
    for address in _INTERNATIONAL.finditer(named):
        domain = address.group(2).decode()
        letters += len(domain)
        if letters > _MOST_LETTERS:
            raise TooMuchToRead
        with suppress(UnicodeError):  # no such domain
            found.append(address.group(1) + b"@" + domain.encode("idna"))
    return b"\n".join(found)


def _is_simple(pattern: str) -> bool:
    return pattern.count("*") <= FEW_WILDCARDS


@lru_cache(maxsize=1024)
def _anywhere(pattern: str) -> Any:
    """Compile a recipient pattern to find an address anywhere in a text, between delimiters.

    `_compiled` is for a text that is one address.
    """
    check_pattern(pattern)
    sides = [re.sub(r"\*+", "*", side) for side in pattern.split("@")]
    address = "@".join(
        f"[^{_OUTSIDE}]+"
        if side == "*"
        else f"[^{_OUTSIDE}]*".join(map(re.escape, side.split("*")))
        for side in sides
    )
    return compile_linear(rf"(?i)(?:\A|[{_OUTSIDE}])(?:{address})(?:\z|[{_OUTSIDE}])")


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    check_pattern(pattern)
    return compile_linear("[^@]*".join(map(re.escape, pattern.lower().split("*"))))
