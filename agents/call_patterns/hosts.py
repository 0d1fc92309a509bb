"""Conditions on hosts: `example.org`, `*.example.org` (all below it), `*` within other labels."""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import re2  # type: ignore[import-untyped]

from agents.call_patterns.fields import any_strings, any_values, holds_host, whole_values
from sandbox.backends.regex import compile_linear
from sandbox.egress.hosts import HostRefused, parse_endpoint
from sandbox.errors import InvalidRequest as InvalidPattern

_PATTERN = re.compile(r"\*|(?:\*\.)?[a-z0-9_*-]+(?:\.[a-z0-9_*-]+)*|[0-9a-f:]*:[0-9a-f:.]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\%\"'<>^`{|}]")
"""In a host part these are read differently by different programs."""
_AMBIGUOUS_LETTERS = frozenset("ßς\u200c\u200d")
"""The two versions of IDNA make different names of them."""

# Found by RE2, in linear time: the text may be a megabyte of slashes.
_AUTHORITY = re2.compile(r"""(?i:[/\\]{2,}|(?:https?|wss?|ftp):[/\\]*)([^/\\?#\s"'<>]+)""")
_HOST_LIKE = re2.compile(r"[\pL\pN\pM_-]+(?:\.[\pL\pN\pM_-]+)+|\[[0-9a-fA-F:.]{2,45}\]")
_LONGEST = 1_000
"""Characters; no host has more in any spelling."""


def check_pattern(pattern: str) -> None:
    """Raises `InvalidPattern`."""
    try:
        _compiled(pattern)
    except UnicodeError:
        raise InvalidPattern("that is no name of a host.") from None


def permits(pattern: str, tool_input: Any) -> bool:
    """Whether the call names hosts, in fields for them, and each fits."""
    named = whole_values(tool_input, holds_host)
    if not named:
        return False
    expression = _compiled(pattern)
    hosts = [_strict_host(text) for text in named]
    return all(host is not None and expression.fullmatch(host.encode()) for host in hosts)


def occurs(pattern: str, tool_input: Any) -> bool:
    """Whether anything in the call that could be a host fits."""
    expression = _compiled(pattern)
    hosts = _loose_hosts(tool_input)
    return any(expression.fullmatch(host.encode(errors="replace")) for host in hosts)


def _strict_host(text: str) -> str | None:
    """The host of a URL, or of `host:port`, where there is only one way to read it."""
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


def _loose_hosts(tool_input: Any) -> Iterator[str]:
    named, mentioned = set(any_values(tool_input, holds_host)), set()
    for text in any_strings(tool_input):
        for view in dict.fromkeys((text, unquote(text), unicodedata.normalize("NFKC", text))):
            # What a shell takes away: `ev"il.example"`, `ev\il.example`.
            bare = re.sub(r"[\"'\\\u200b-\u200d\u2060\ufeff\xad]|[\t\r\n]", "", view)
            for source in dict.fromkeys((view, bare)):
                data = source.encode(errors="replace")
                named |= {match.group(1).decode() for match in _AUTHORITY.finditer(data)}
                mentioned |= {match.group().decode() for match in _HOST_LIKE.finditer(data)}
    for authority in named:
        yield from _of_authority(authority)
    for host in mentioned:
        yield from _readings(host)


def _of_authority(authority: str) -> Iterator[str]:
    for part in authority.split("@"):
        yield from _readings(part)
        yield from _readings(part.partition(":")[0])


def _readings(host: str) -> Iterator[str]:
    host = host.strip("[]").rstrip(".")
    if not host or len(host) > _LONGEST:
        return
    yield host.casefold()
    name = _ascii(host, strict=False)
    if name:
        yield name
    try:
        # 2130706433, 0x7f.1 and 127.1 are 127.0.0.1 to many programs.
        yield socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        pass


def _ascii(host: str, *, strict: bool) -> str | None:
    """A name as it is looked up: lower case, xn--, without the dot at its end."""
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
def _compiled(pattern: str) -> Any:
    name = pattern.strip("[]").removesuffix(".").lower()
    if not name.isascii():
        labels = (part if "*" in part else part.encode("idna").decode() for part in name.split("."))
        name = ".".join(labels)
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
