"""Conditions on hosts: `example.org`, `*.example.org` (names below it), `*` within other labels."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

from agents.call_patterns.fields import holds_host, whole_values
from agents.call_patterns.host_expressions import (
    AFTER,
    BEFORE,
    Wanted,
    any_numbers,
    lone_numbers,
    numbers_for,
    octets_of,
    wanted,
    wanted_words,
)
from agents.call_patterns.host_views import lines_of, views_of
from agents.call_patterns.steps import Steps, TooMuchToRead
from sandbox.backends.patterns import LatePattern, compile_linear
from sandbox.errors import InvalidRequest as InvalidPattern
from sandbox.linux.egress.hosts import HostRefused, parse_endpoint

_PATTERN = re.compile(r"\*|(?:\*\.)?[a-z0-9_*-]+(?:\.[a-z0-9_*-]+)*|[0-9a-f:]*:[0-9a-f:.]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\%\"'<>^`{|}]")
"""Characters that programs interpret differently in a host."""
_AMBIGUOUS_LETTERS = frozenset("ßς\u200c\u200d")
"""Letters that the two versions of IDNA convert to different names."""

# RE2 finds them in linear time: the text may be a megabyte of slashes.
_OTHER = r"\x{80}-\x{10ffff}"
_RUN = rf"[a-zA-Z0-9_.{_OTHER}-]*"
_INTERNATIONAL = LatePattern(rf"{_RUN}[{_OTHER}]{_RUN}\.{_RUN}|{_RUN}\.{_RUN}[{_OTHER}]{_RUN}")
_INTERNATIONAL_AUTHORITY = LatePattern(rf"(?i:{BEFORE})([^{AFTER}]*[{_OTHER}][^{AFTER}]*)")
_INTERNATIONAL_LINE = LatePattern(rf"[^\n]*[{_OTHER}][^\n]*")
_HOST_LIKE = LatePattern(r"[\pL\pN\pM_-]+(?:\.[\pL\pN\pM_-]+)+")
_DOTS = r".\x{3002}\x{ff0e}\x{ff61}"
_LONGEST = 1_000
"""Maximum characters of a host in any spelling."""
_MOST_LETTERS = 50_000
"""Limit of characters of international names that are converted to ASCII for one call."""
_MOST_CANDIDATES = 100_000
"""Limit of international names and numbers that are checked one by one for one call."""
_MOST_ADDRESSES = 50
_STEPS_OF_URL = 3_000
"""Steps to parse one URL."""
_OF_NUMBERS = b"0123456789abcdefABCDEFxX."


class HostReading:
    """The possible hosts of one call, parsed once for all patterns."""

    def __init__(self, tool_input: Any, steps: Steps) -> None:
        self._input = tool_input
        self._steps = steps
        self._candidates = _MOST_CANDIDATES
        self._letters = _MOST_LETTERS
        self._ascii: dict[str, str | None] = {}

    @cached_property
    def views(self) -> list[bytes]:
        return views_of(self._input)

    @cached_property
    def lines(self) -> list[bytes]:
        return lines_of(self._input)

    def fits(self, pattern: str) -> bool:
        """Return whether a host in the call matches, in any place and spelling.

        Raises `TooMuchToRead`.
        """
        name = _name(pattern)
        _compiled(pattern)
        if self._has(wanted(name)):
            return True
        octets = octets_of(name)
        if octets and "*" in "".join(octets) and self._has_address(pattern, octets):
            return True
        return _may_be_encoded(name) and self._has_international(pattern)

    def _has(self, what: Wanted) -> bool:
        return any(
            self._steps.search(expression, data, simple=what.simple)
            for places, expressions in ((self.lines, what.lines), (self.views, what.texts))
            for data in places
            for expression in expressions
        )

    def _has_address(self, pattern: str, octets: tuple[str, ...]) -> bool:
        """Return whether the call has an IPv4 address in an unusual form that matches `pattern`.

        Such forms are `0x7f.1` and `2130706433`. Only places where a host can be count. `octets`
        are the four parts of the pattern. Raises `TooMuchToRead`.
        """
        expression = _compiled(pattern)
        found = set()
        for number in self._numbers(octets):
            try:
                address = socket.inet_ntoa(socket.inet_aton(number))
            except OSError:
                continue
            if expression.fullmatch(address.encode()):
                found.add(number)
                if len(found) > _MOST_ADDRESSES:
                    raise TooMuchToRead
        return bool(found) and self._has(wanted_words(found))

    def _numbers(self, octets: tuple[str, ...]) -> Iterator[str]:
        places: list[tuple[bytes, tuple[Any, ...]]]
        places = [(data, (any_numbers(),)) for data in self.lines]
        places += [(data, (numbers_for(octets), lone_numbers())) for data in self.views]
        for data, expressions in places:
            for expression in expressions:
                for found in self._each(expression, data):
                    written = found.group()
                    yield written[len(written.rstrip(_OF_NUMBERS)) :].decode()

    def _has_international(self, pattern: str) -> bool:
        """Return whether the ASCII form of an international name matches."""
        expression, loosely = _compiled(pattern), _loosely(_name(pattern))
        for written in self._international():
            host = written.strip("[]").rstrip(".")
            if host.isascii() or len(host) > _LONGEST or not loosely.fullmatch(host.encode()):
                continue
            name = self._in_ascii(host)
            if name is not None and expression.fullmatch(name.encode()):
                return True
        return False

    def _international(self) -> Iterator[str]:
        for data in self.lines:
            for line in self._each(_INTERNATIONAL_LINE, data):
                yield from _with_and_without_port(line.group().decode())
        for data in self.views:
            for authority in self._each(_INTERNATIONAL_AUTHORITY, data):
                yield from _with_and_without_port(authority.group(1).decode())
            for run in self._each(_INTERNATIONAL, data):
                for name in self._each(_HOST_LIKE, run.group()):
                    yield name.group().decode()

    def _each(self, expression: Any, data: bytes) -> Iterator[Any]:
        self._steps.take(len(data))
        for found in expression.finditer(data):
            self._candidates -= 1
            if self._candidates < 0:
                raise TooMuchToRead
            yield found

    def _in_ascii(self, host: str) -> str | None:
        if host not in self._ascii:
            self._letters -= len(host)
            if self._letters < 0:
                raise TooMuchToRead
            self._ascii[host] = _ascii(host, strict=False)
        return self._ascii[host]


def check_pattern(pattern: str) -> None:
    """Raise `InvalidPattern` if the pattern is not valid."""
    try:
        _compiled(pattern)
    except UnicodeError:
        raise InvalidPattern("that is no name of a host.") from None
    wanted(_name(pattern))


def permits(pattern: str, tool_input: Any, steps: Steps) -> bool:
    """Return whether the call has hosts, in fields for hosts, and each matches.

    Raises `TooMuchToRead`.
    """
    named = whole_values(tool_input, holds_host)
    if not named:
        return False
    expression = _compiled(pattern)
    letters = 0
    for text in dict.fromkeys(named):
        if not text.isascii():
            letters += len(text)
            if letters > _MOST_LETTERS:
                raise TooMuchToRead
        steps.take(_STEPS_OF_URL)
        host = _strict_host(text)
        if host is None or not expression.fullmatch(host.encode()):
            return False
    return True


def _strict_host(text: str) -> str | None:
    """Return the host of a URL or of `host:port`. None if it is ambiguous."""
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if not scheme and authority != rest:
        return None
    if len(authority) > _LONGEST or _AMBIGUOUS.search(authority):
        return None
    if re.search(r"[\x00-\x20\x7f\\]", text):
        return None
    user, at, written = authority.rpartition("@")
    if "@" in user or (at and not scheme):
        return None
    host, colon, port = (written, "", "") if written.startswith("[") else written.partition(":")
    name = _ascii(host, strict=True)
    if name is None:
        return None
    try:
        return parse_endpoint(f"{name}{colon}{port}", default_port=0).host
    except HostRefused:
        return None


def _with_and_without_port(authority: str) -> tuple[str, str]:
    return authority, authority.partition(":")[0]


def _ascii(host: str, *, strict: bool) -> str | None:
    """Return a name as used for DNS: lower case, xn--, without a final dot."""
    name = host.removesuffix(".")
    if strict and _AMBIGUOUS_LETTERS & set(name):
        return None
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return name.lower()


@lru_cache(maxsize=1024)
def _name(pattern: str) -> str:
    """Return a pattern in lower case and ASCII. Raises `UnicodeError`."""
    name = pattern.strip("[]").removesuffix(".").lower()
    if name.isascii():
        return name
    labels = (part if "*" in part else part.encode("idna").decode() for part in name.split("."))
    return ".".join(labels)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    name = _name(pattern)
    if not _PATTERN.fullmatch(name):
        raise InvalidPattern(
            f"{pattern!r} is no host. Write hosts as example.org or *.example.org, without a "
            "scheme, a port or a path."
        )
    if name == "*":
        return compile_linear("(?s:.+)")
    below = name.startswith("*.")
    labels_of = name.removeprefix("*.").split(".")
    rest = r"\.".join("[^.]*".join(map(re.escape, label.split("*"))) for label in labels_of)
    return compile_linear((r"(?:[^.]+\.)+" if below else "") + rest)


def _may_be_encoded(name: str) -> bool:
    """Return whether a name's labels may only match in their ASCII form.

    A label becomes `xn--…`, or the ASCII text that the views contain.
    """
    for label in name.split("."):
        first, star, _ = label.partition("*")
        if first.startswith("xn--"):
            return True
        if star and label.strip("*") and "xn--".startswith(first):
            return True
    return False


@lru_cache(maxsize=1024)
def _loosely(name: str) -> Any:
    """Return an expression that a name must match before its conversion to ASCII."""
    below = name.startswith("*.")
    other = f"[^{_DOTS}]*[{_OTHER}][^{_DOTS}]*"
    labels = [
        "(?:" + f"[^{_DOTS}]*".join(map(re.escape, label.split("*"))) + f"|{other})"
        for label in name.removeprefix("*.").split(".")
    ]
    start = f"(?:[^{_DOTS}]+[{_DOTS}])+" if below else ""
    return compile_linear(f"(?i){start}{f'[{_DOTS}]'.join(labels)}[{_DOTS}]*")
