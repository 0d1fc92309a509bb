"""Read the server name of a TLS client from its first bytes."""

from __future__ import annotations

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0
LONGEST_HELLO = 32 * 1024


class NotUnderstood(ValueError):
    """The data starts like TLS but is not a ClientHello."""


def looks_like_tls(first: bytes) -> bool:
    return first[:1] == bytes([_HANDSHAKE])


def server_name(data: bytes) -> str | None:
    """Return the SNI of a ClientHello in lower case, "" if it has none, or None for partial data.

    Raises `NotUnderstood`.
    """
    hello = _handshake_message(data)
    if hello is None:
        return None
    try:
        return _name_in(hello)
    except (IndexError, UnicodeDecodeError) as error:
        raise NotUnderstood("a malformed TLS ClientHello") from error


def _handshake_message(data: bytes) -> bytes | None:
    """The body of the first handshake message, which may be split over several records."""
    if len(data) > LONGEST_HELLO:
        raise NotUnderstood("a TLS ClientHello that is too long")
    message = b""
    while len(data) >= 5:
        length = int.from_bytes(data[3:5], "big")
        if data[0] != _HANDSHAKE or data[1] != 3 or not 0 < length <= 16384:
            raise NotUnderstood("data that starts like TLS but is not a ClientHello")
        message += data[5 : 5 + length]
        if message[0:1] not in (b"", bytes([_CLIENT_HELLO])):
            raise NotUnderstood("data that starts like TLS but is not a ClientHello")
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4], "big"):
            return message[4 : 4 + int.from_bytes(message[1:4], "big")]
        if len(data) < 5 + length:
            return None
        data = data[5 + length :]
    return None


class _Fields:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def __bool__(self) -> bool:
        return bool(self._data)

    def take(self, count: int) -> bytes:
        taken, self._data = self._data[:count], self._data[count:]
        if len(taken) < count:
            raise IndexError("a field ends too early")
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> bytes:
        """Read a length of `size` bytes, and then that many bytes."""
        return self.take(self.number(size))


def _name_in(hello: bytes) -> str:
    fields = _Fields(hello)
    fields.take(2 + 32)  # version, random
    fields.block(1)  # session id
    fields.block(2)  # cipher suites
    fields.block(1)  # compression
    if not fields:
        return ""
    extensions = _Fields(fields.block(2))
    names = []
    while extensions:
        kind, content = extensions.number(2), extensions.block(2)
        if kind == _SERVER_NAME:
            listed = _Fields(_Fields(content).block(2))
            while listed:
                of_host, name = listed.number(1) == _HOST_NAME, listed.block(2)
                if of_host:
                    names.append(name.decode("ascii").lower())
    if len(names) > 1:
        raise NotUnderstood("a TLS ClientHello with two server names")
    return names[0] if names else ""
