"""One connection of a command: read its request, check it, forward it and log it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from sandbox.linux.egress.dialling import Destinations, Unreachable, dial
from sandbox.linux.egress.hosts import displayed
from sandbox.linux.egress.request import LONGEST_HEAD, Request, RequestRefused, parse_request
from sandbox.linux.egress.rules import Rules
from sandbox.linux.egress.wire import Allowance, AllowanceSpent, BodyRefused, Wire, body_of
from sandbox.result import Connection

MOST_ROWS = 100
_OTHERS = "(others)"


class ConnectionLog:
    """The connections of one command, for its result. Not thread-safe.

    Connections that differ only in their number of bytes are one row with a count. After
    `MOST_ROWS` rows, all others are counted in two rows with the host `(others)`: allowed and
    refused.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int, bool, str], list[int]] = {}

    def add(
        self, host: str, port: int, *, allowed: bool, reason: str, sent: int = 0, received: int = 0
    ) -> None:
        key = (displayed(host), port, allowed, reason)
        if key not in self._rows and len(self._rows) >= MOST_ROWS:
            key = (_OTHERS, 0, allowed, f"more than {MOST_ROWS} different destinations")
        row = self._rows.setdefault(key, [0, 0, 0])
        for column, count in enumerate((1, sent, received)):
            row[column] += count

    def connections(self) -> tuple[Connection, ...]:
        return tuple(
            Connection(host, port, allowed, reason, sent, received, count)
            for (host, port, allowed, reason), (count, sent, received) in self._rows.items()
        )


@dataclass(frozen=True, slots=True)
class EgressLimits:
    """The limits of one command's network use, in seconds and bytes.

    `idle_seconds` limits a silent connection. At the limit of `connections`, new connections wait
    until another one ends.
    """

    connections: int = 32
    head_seconds: float = 10.0
    connect_seconds: float = 20.0
    idle_seconds: float = 120.0
    bytes: int = 8 * 1024**3


class _Refused(Exception):
    def __init__(self, status: str, reason: str, *, allowed: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.allowed = allowed


class ProxyConnection:
    """One connection to the proxy.

    `serve` handles it completely and closes every socket. It never raises for an action of a client
    or a server.
    """

    def __init__(
        self,
        client: socket.socket,
        rules: Rules,
        world: Destinations,
        limits: EgressLimits,
        allowance: Allowance,
        log: ConnectionLog,
    ) -> None:
        self._client = Wire(client)
        self._rules = rules
        self._world = world
        self._limits = limits
        self._allowance = allowance
        self._log = log
        self._host, self._port = "", 0
        self._sent = self._received = 0
        self._allowed = False
        self._reason = "it ended before a decision"
        self._patience: asyncio.Timeout | None = None

    async def serve(self) -> None:
        try:
            try:
                await self._serve()
            except _Refused as refused:
                self._allowed, self._reason = refused.allowed, refused.reason
                await self._answer(refused)
        except OSError:
            pass  # the client has disconnected; the log has the decisions so far
        finally:
            self._client.socket.close()
            if self._reason:
                self._log.add(
                    self._host,
                    self._port,
                    allowed=self._allowed,
                    reason=self._reason,
                    sent=self._sent,
                    received=self._received,
                )

    async def _serve(self) -> None:
        request = await self._read_request()
        if request is None:
            self._reason = ""  # the client connected and left without a request
            return
        endpoint = request.endpoint
        self._host, self._port = endpoint.host, endpoint.port
        refusal = self._rules.refusal(endpoint)
        if refusal is not None:
            raise _Refused("403 Forbidden", refusal)
        try:
            connected = await dial(endpoint, self._world, self._limits.connect_seconds)
        except Unreachable as problem:
            status = "403 Forbidden" if problem.forbidden else "502 Bad Gateway"
            raise _Refused(status, problem.reason, allowed=not problem.forbidden) from None
        self._allowed, self._reason = True, "allowed"
        with connected:
            await self._carry(request, Wire(connected))

    async def _read_request(self) -> Request | None:
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                head = await self._client.receive_until(b"\r\n\r\n", LONGEST_HEAD)
        except TimeoutError:
            raise _Refused(
                "408 Request Timeout", f"no whole request within {self._limits.head_seconds:g} s"
            ) from None
        if head is None:
            if self._client.is_untouched:
                return None
            raise _Refused("400 Bad Request", "a request that has no end or is too long")
        try:
            return parse_request(head)
        except RequestRefused as refused:
            self._host, self._port = refused.host, refused.port
            raise _Refused("400 Bad Request", refused.reason) from None

    async def _carry(self, request: Request, server: Wire) -> None:
        """Forward data in both directions until both end or no byte arrives for too long."""
        try:
            async with asyncio.timeout(self._limits.idle_seconds) as self._patience:
                if request.connect:
                    await self._client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    up = self._tunnel_up(request, server)
                    await _both(self._down(server), up, first_decides=False)
                else:
                    await self._send(server, request.head)
                    # A server can answer before it has read the whole upload.
                    up = self._body_up(request, server)
                    await _both(self._down(server), up, first_decides=True)
        except TimeoutError:
            self._reason = f"allowed; closed after {self._limits.idle_seconds:g} s without a byte"
        except AllowanceSpent:
            self._reason = f"allowed; closed at the command's limit of {self._limits.bytes:,} bytes"
        except OSError as error:
            self._reason = f"allowed; interrupted ({error.strerror or error})"
        except (BodyRefused, NotUnderstood) as refused:
            self._allowed, self._reason = False, str(refused)

    async def _tunnel_up(self, request: Request, server: Wire) -> None:
        if self._rules.checks_server_name and request.endpoint.address is None:
            await self._check_server_name(request.endpoint.host, server)
        while data := await self._client.receive():
            await self._send(server, data)
        server.end_sending()

    async def _check_server_name(self, host: str, server: Wire) -> None:
        """Check that the server name in the TLS handshake is the allowed host.

        With another server name, TLS could reach another site at the same address.
        """
        data = await self._client.receive()
        if looks_like_tls(data):
            name = server_name(data)
            while name is None:
                more = await self._client.receive(LONGEST_HELLO)
                if not more:
                    raise NotUnderstood("a TLS ClientHello that ends too early")
                data += more
                name = server_name(data)
            if name != host:
                raise NotUnderstood("TLS for a server name that is not the name of the tunnel")
        if data:
            await self._send(server, data)

    async def _body_up(self, request: Request, server: Wire) -> None:
        try:
            async for piece in body_of(self._client, request.length):
                await self._send(server, piece)
        except ConnectionError:
            pass  # the server does not read the rest, but may have answered

    async def _down(self, server: Wire) -> None:
        while data := await server.receive():
            self._count(len(data))
            self._received += len(data)
            await self._client.send(data)
        self._client.end_sending()

    async def _send(self, server: Wire, data: bytes) -> None:
        self._count(len(data))
        self._sent += len(data)
        await server.send(data)

    def _count(self, count: int) -> None:
        self._allowance.take(count)
        if self._patience is not None:
            now = asyncio.get_running_loop().time()
            self._patience.reschedule(now + self._limits.idle_seconds)

    async def _answer(self, refused: _Refused) -> None:
        text = f"The network of this sandbox: {refused.reason}.\n".encode("ascii", "replace")
        head = (
            f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                await self._client.send(head.encode("ascii") + text)
                self._client.end_sending()
                # If a socket closes with unread data, the kernel resets the connection, and the
                # client would lose the answer.
                while await self._client.receive():
                    pass
        except TimeoutError:
            pass  # the client does not read: close the connection anyway


async def _both(
    first: Coroutine[Any, Any, None], second: Coroutine[Any, Any, None], *, first_decides: bool
) -> None:
    """Run two coroutines until both have ended or one has failed.

    With `first_decides`, the end of the first one also ends the second one.
    """
    tasks = [asyncio.ensure_future(first), asyncio.ensure_future(second)]
    try:
        pending = set(tasks)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if first_decides and tasks[0].done():
                return
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0
LONGEST_HELLO = 32 * 1024


class NotUnderstood(ValueError):
    """Raised for data that starts like TLS but is not a ClientHello for the host of the tunnel."""


def looks_like_tls(first: bytes) -> bool:
    return first[:1] == bytes([_HANDSHAKE])


def server_name(data: bytes) -> str | None:
    """Return the server name (SNI) of a TLS ClientHello in lower case.

    Returns "" if it has no server name, and None if `data` is not complete. Raises `NotUnderstood`.
    """
    hello = _handshake_message(data)
    if hello is None:
        return None
    try:
        return _name_in(hello)
    except (IndexError, UnicodeDecodeError) as error:
        raise NotUnderstood("a malformed TLS ClientHello") from error


def _handshake_message(data: bytes) -> bytes | None:
    """Return the body of the first handshake message, or None if `data` is not complete.

    The message may be split over several records.
    """
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
