"""Parse the head of a request to the proxy strictly: ambiguous requests are refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandbox.linux.egress.hosts import Endpoint, HostRefused, parse_endpoint

LONGEST_HEAD = 32 * 1024
MOST_HEADERS = 100

_METHOD = re.compile(r"[A-Z]{1,20}")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_TARGET = re.compile(r"[\x21-\x7e]+")
_LENGTH = re.compile(r"[0-9]{1,18}")

_OF_THIS_HOP = {
    *("connection", "proxy-connection", "keep-alive", "te", "trailer", "upgrade"),
    *("proxy-authorization", "proxy-authenticate"),
}
_FRAMING = {"host", "content-length", "transfer-encoding"}
"""Written again for the server, from the parsed values."""


class RequestRefused(Exception):
    """Raised for an invalid or unsupported request.

    `host` and `port` are empty if they could not be read.
    """

    def __init__(self, reason: str, host: str = "", port: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.host = host
        self.port = port


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client. `head` is the data to send to the server, empty for CONNECT.

    `length` is the length of the body in bytes; None means chunks.
    """

    endpoint: Endpoint
    connect: bool
    head: bytes = b""
    length: int | None = 0


def parse_request(head: bytes) -> Request:
    """Parse `head` without the final empty line. Raises `RequestRefused`."""
    text = head.decode("latin-1")
    # No pattern below matches a stray line break or NUL.
    line, *lines = text.split("\r\n")
    parts = line.split(" ")
    if len(parts) != 3 or not _METHOD.fullmatch(parts[0]) or not _TARGET.fullmatch(parts[1]):
        raise RequestRefused("not a request to an HTTP proxy")
    method, target, version = parts
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise RequestRefused("a version of HTTP other than 1.1 and 1.0")
    headers = _headers(lines)
    if method == "CONNECT":
        endpoint = _endpoint(target, None)
        _check_no_body(headers, endpoint)
        return Request(endpoint, connect=True)
    endpoint, path = _absolute(target)
    try:
        length = _body_length(headers, version)
        _check_host(headers, endpoint)
    except RequestRefused as error:
        raise RequestRefused(error.reason, endpoint.host, endpoint.port) from None
    forward = _forwarded(headers, endpoint, length)
    request_line = f"{method} {path} {version}\r\n"
    return Request(endpoint, False, (request_line + forward).encode("latin-1"), length)


def _headers(lines: list[str]) -> list[tuple[str, str]]:
    if len(lines) > MOST_HEADERS:
        raise RequestRefused(f"more than {MOST_HEADERS} header lines")
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        # Servers disagree about a space before the colon and about a folded line.
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise RequestRefused("a header line that is not well-formed")
        headers.append((name, value.strip(" \t")))
    return headers


def _all(headers: list[tuple[str, str]], wanted: str) -> list[str]:
    return [value for name, value in headers if name.lower() == wanted]


def _endpoint(text: str, default_port: int | None) -> Endpoint:
    try:
        return parse_endpoint(text, default_port)
    except HostRefused as error:
        raise RequestRefused(str(error), text) from None


def _absolute(target: str) -> tuple[Endpoint, str]:
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() != "http":
        raise RequestRefused("a request that is neither CONNECT nor for an http:// address")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :]
    if "#" in path:
        raise RequestRefused("an address with a fragment", authority)
    return _endpoint(authority, 80), path if path.startswith("/") else f"/{path}"


def _body_length(headers: list[tuple[str, str]], version: str) -> int | None:
    lengths, codings = _all(headers, "content-length"), _all(headers, "transfer-encoding")
    if codings:
        if lengths or len(codings) > 1 or codings[0].lower() != "chunked" or version != "HTTP/1.1":
            raise RequestRefused("a request with an ambiguous length")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise RequestRefused("a request with an ambiguous length")
    return int(lengths[0])


def _check_no_body(headers: list[tuple[str, str]], endpoint: Endpoint) -> None:
    if _all(headers, "transfer-encoding") or set(_all(headers, "content-length")) - {"0"}:
        raise RequestRefused("CONNECT with a body", endpoint.host, endpoint.port)


def _check_host(headers: list[tuple[str, str]], endpoint: Endpoint) -> None:
    hosts = _all(headers, "host")
    if len(hosts) > 1 or (hosts and _endpoint(hosts[0], 80) != endpoint):
        raise RequestRefused("a Host header that is not the host of the address")


def _forwarded(headers: list[tuple[str, str]], endpoint: Endpoint, length: int | None) -> str:
    named = {
        name.strip().lower() for value in _all(headers, "connection") for name in value.split(",")
    }
    dropped = _OF_THIS_HOP | _FRAMING | named
    kept = [(name, value) for name, value in headers if name.lower() not in dropped]
    kept.insert(0, ("Host", endpoint.authority))
    if length is None:
        kept.append(("Transfer-Encoding", "chunked"))
    elif length or _all(headers, "content-length"):
        kept.append(("Content-Length", str(length)))
    # One request per connection, so the next request is checked like the first.
    kept.append(("Connection", "close"))
    return "".join(f"{name}: {value}\r\n" for name, value in kept) + "\r\n"
