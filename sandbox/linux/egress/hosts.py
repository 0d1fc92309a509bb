"""Parsing of host names and ports of clients: one accepted form for each, others are refused.

Some resolvers take `127.1`, `0x7f000001`, `2130706433` and `127.0.0.1.` for loopback. Such forms
never reach a resolver: a host is an ASCII name in lower case with two or more labels, a dotted
quad, or an IPv6 address in brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

Address = IPv4Address | IPv6Address

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LONGEST_NAME = 253


class HostRefused(ValueError):
    """Raised for a host or port that is not in the accepted form. The message says why."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and a port. The name is in lower case; an address is as `ipaddress` prints it.

    `address` is set if the host is an address and not a name.
    """

    host: str
    port: int
    address: Address | None = None

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == 80 else f"{host}:{self.port}"


def parse_endpoint(text: str, default_port: int | None = None) -> Endpoint:
    """Parse `host:port`, or `host` with a default port. Raises `HostRefused`."""
    if text.startswith("["):
        inner, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise HostRefused("brackets without a valid IPv6 address")
        address: Address | None = _ipv6(inner)
        host, colon, port = str(address), rest[:1], rest[1:]
    else:
        written, colon, port = text.partition(":")
        host, address = parse_host(written)
    if not colon and default_port is not None:
        return Endpoint(host, default_port, address)
    return Endpoint(host, parse_port(port), address)


def parse_host(text: str) -> tuple[str, IPv4Address | None]:
    """Return (lower-case name, None) for a host name, (dotted quad, address) for an IPv4 address.

    Raises:
        HostRefused: The text is neither, or the name is not ASCII, has no dot, or ends with a dot.
    """
    if not text.isascii():
        raise HostRefused("a host name that is not ASCII; write it in its xn-- form")
    if "@" in text:
        raise HostRefused("a user name before the host")
    name = text.lower()
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(name)
    if name.endswith("."):
        raise HostRefused("a host name with a dot at its end")
    if len(name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise HostRefused("an invalid host name")
    if len(labels) < 2:
        raise HostRefused("a name without a dot, which is not a public host")
    return name, None


def parse_port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text) > 65535:
        raise HostRefused("a port that is not a number from 1 to 65535")
    return int(text)


def displayed(host: str) -> str:
    """Return any text of a client as a host for logs and pages: short, printable, no markup."""
    return re.sub(r"[^A-Za-z0-9.:_\-\[\]]", "?", host)[:_LONGEST_NAME]


def _ipv4(name: str) -> tuple[str, IPv4Address]:
    try:
        address = IPv4Address(name)
    except AddressValueError:
        raise HostRefused("an IPv4 address that is not a dotted quad") from None
    return str(address), address


def _ipv6(text: str) -> IPv6Address:
    if "%" in text:
        raise HostRefused("an IPv6 address with a zone")
    try:
        return IPv6Address(text)
    except AddressValueError:
        raise HostRefused("brackets without a valid IPv6 address") from None
