"""A host pattern as expressions for whole texts, so that RE2 reads each text only once.

A host can be in one of four places:
- alone in a line, which is a part of a field for hosts;
- after `//`, `https:` or `@`, up to the end of an authority;
- in brackets, such as an IPv6 address;
- anywhere, as a name with a dot. Adjacent letters that are not ASCII may belong to it or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agents.call_patterns.steps import FEW_WILDCARDS
from sandbox.backends.patterns import compile_linear

BEFORE = r"""(?:[/\\]{2,}|(?:https?|wss?|ftp):[/\\]*|@)"""
AFTER = r"""/\\?#\s"'<>@"""
_ASCII = r"a-z0-9_\-"
_NAME = rf"{_ASCII}\x{{80}}-\x{{10ffff}}"

_ANY_NUMBER = "(?:0x[0-9a-f]+|[0-9]+)"
_OCTET = re.compile(r"0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5]|[0-9]*\*[0-9*]*")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The expressions of a pattern. `simple` as in `Steps.search`."""

    lines: tuple[Any, ...]
    texts: tuple[Any, ...]
    simple: bool


Spelled = Callable[[str, bool], str]
"""Returns a host as an expression, for the class that `*` matches and whether names have dots."""


@lru_cache(maxsize=1024)
def wanted(name: str) -> Wanted:
    """Return the expressions that find the hosts that `name`, a pattern in ASCII form, matches.

    If `name` is an IPv4 address, they also find its other spellings, such as 0x7f.1.
    """
    name = re.sub(r"\*+", "*", name)
    return _wanted(
        lambda wild, dotted: _expression(name, wild, dotted),
        numbers=_spellings(octets_of(name) or ()),
        in_names="." in name or name == "*",
        before_ports=":" not in name,
        simple=name.count("*") <= FEW_WILDCARDS,
    )


def wanted_words(words: Iterable[str]) -> Wanted:
    """Return the expressions of literal words. Only those with a dot are names anywhere."""
    words = list(words)
    named = [word for word in words if "." in word]
    return _wanted(
        lambda wild, dotted: "|".join(map(re.escape, named if dotted else words)),
        in_names=bool(named),
    )


def _wanted(
    host: Spelled,
    *,
    numbers: list[str] | None = None,
    in_names: bool = True,
    before_ports: bool = True,
    simple: bool = True,
) -> Wanted:
    numbers = numbers or []

    def place(begin: str, never: str, end: str, rest: str) -> str:
        """Return an expression for a host up to `end` or a port. `rest` can follow a number."""
        spelled = [f"(?:{each})(?:{rest})?" for each in numbers]
        whole = "|".join([host(f"[^.{never}]", False), *spelled])
        before = "|".join([host(f"[^.:{never}]", False), *spelled])
        port = f"|(?:{before})\\.*[\\[\\]]*:" if before_ports else ""
        return f"{begin}[\\[\\]]*(?:(?:{whole})\\.*[\\[\\]]*{end}{port})"

    line = place("(?m:^)", r"\n", "(?m:$)", r"[ \t\v\f\r][^\n]*")
    authority = place(BEFORE, AFTER, rf"(?:[{AFTER}]|\z)", rf"\v[^{AFTER}]*")
    inside = "|".join([host("[0-9a-f:]", False), *numbers])
    texts = [authority, rf"\[+(?:{inside})\.*\]"]
    if in_names:
        begin = rf"(?:\A|[^{_ASCII}.]|(?:\A|[^{_ASCII}])\.)"
        end = rf"(?:\z|[^{_ASCII}.]|\.(?:\z|[^{_ASCII}]))"
        with_dots = [each for each in numbers if r"\." in each]
        named = "|".join([host(f"[{_NAME}]", True), *with_dots])
        texts.append(f"{begin}(?:{named}){end}")
    return Wanted(
        lines=(compile_linear(f"(?i){line}"),),
        texts=tuple(compile_linear(f"(?i){each}") for each in texts),
        simple=simple,
    )


def _expression(name: str, wild: str, dotted: bool) -> str:
    if name == "*":
        return rf"{wild}+(?:\.{wild}+)+" if dotted else rf"\.*{wild}+(?:\.+{wild}+)*"
    below = name.startswith("*.")
    labels = name.removeprefix("*.").split(".")
    found = [f"{wild}*".join(map(re.escape, label.split("*"))) for label in labels]
    for at, label in enumerate(labels):
        if label == "*" and (dotted or at == len(labels) - 1):
            found[at] = f"{wild}+"
    return (rf"(?:{wild}+\.)+" if below else "") + r"\.".join(found)


def octets_of(name: str) -> tuple[str, ...] | None:
    """Return the parts of a pattern that can match an IPv4 address. None for other patterns."""
    labels = name.split(".")
    if name.startswith("*.") and len(labels) < 4:
        labels = ["*"] * (4 - len(labels)) + labels
    if len(labels) != 4 or not all(map(_OCTET.fullmatch, labels)):
        return None
    return tuple(labels)


def numbers_for(octets: tuple[str, ...]) -> Any:
    """Return an expression for short forms of addresses: 10.1 is 10.0.0.1 for many programs."""
    first = _ANY_NUMBER if "*" in octets[0] else _spellings_of(int(octets[0]))
    return compile_linear(rf"(?i){first}(?:\.{_ANY_NUMBER}){{1,3}}")


@lru_cache(maxsize=1)
def any_numbers() -> Any:
    return compile_linear(rf"(?i){_ANY_NUMBER}(?:\.{_ANY_NUMBER}){{0,3}}")


@lru_cache(maxsize=1)
def lone_numbers() -> Any:
    """Return an expression for numbers, with or without dots, at the place of a host."""
    return compile_linear(rf"(?i)(?:{BEFORE}|\[)[\[\]]*{_ANY_NUMBER}(?:\.{_ANY_NUMBER}){{0,3}}")


def _spellings(octets: Sequence[str]) -> list[str]:
    """Return spellings of an IPv4 address with one to four decimal, octal or hexadecimal parts."""
    if not octets or "*" in "".join(octets):
        return []
    values = list(map(int, octets))
    found = []
    for count in range(1, 5):
        last = int.from_bytes(bytes(values[count - 1 :]), "big")
        found.append(r"\.".join(map(_spellings_of, [*values[: count - 1], last])))
    return found


def _spellings_of(number: int) -> str:
    return f"(?:0x0*{number:x}|0+{number:o}|{number})" if number else "(?:0x0+|0+)"
