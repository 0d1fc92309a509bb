"""A hostile server gets no file and no password, and cannot keep the worker busy."""

from __future__ import annotations

import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.process_limits import MEMORY_BYTES
from agents.features.databases.drivers.target import DatabaseTarget
from tests.agents.features.databases.drivers.shop import ask

PASSWORD = "hunter2"
_CAPABILITIES = 0x00000200 | 0x00000008 | 0x00002000 | 0x00008000 | 0x00080000
_OK = b"\x00\x00\x00\x02\x00\x00\x00"


class Peer:
    """The server's end of a connection: packets of the protocol, and the received data."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.heard = b""

    def say(self, number: int, payload: bytes) -> None:
        self._connection.sendall(struct.pack("<I", len(payload))[:3] + bytes([number]) + payload)

    def hear(self) -> bytes:
        found = self._connection.recv(65_536)
        self.heard += found
        return found

    def greet(self) -> None:
        low, high = _CAPABILITIES & 0xFFFF, _CAPABILITIES >> 16
        self.say(
            0,
            b"\x0a8.0.0\x00" + struct.pack("<I", 7) + b"saltsalt\x00"
            + struct.pack("<HBHHB", low, 45, 2, high, 21) + b"\x00" * 10
            + b"saltsaltsalt\x00" + b"mysql_native_password\x00",
        )  # fmt: skip


@contextmanager
def hostile(play: Callable[[Peer], None]) -> Iterator[tuple[str, list[Peer]]]:
    """Start a server on loopback that plays its part for each connection; yield its URL."""
    peers: list[Peer] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                peers.append(Peer(connection))
                try:
                    play(peers[-1])
                    while peers[-1].hear():
                        pass
                except OSError:
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            port = listener.getsockname()[1]
            yield f"mysql://ada:{PASSWORD}@127.0.0.1:{port}/shop?connect_timeout=1", peers
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def asks_for_a_file(peer: Peer) -> None:
    peer.greet()
    peer.hear()
    peer.say(2, _OK)
    peer.hear()  # SET NAMES
    peer.say(1, _OK)
    peer.hear()
    peer.say(1, b"\xfb/etc/passwd")


def asks_for_the_password(peer: Peer) -> None:
    peer.greet()
    peer.hear()
    peer.say(2, b"\xfemysql_clear_password\x00")


def never_ends_a_packet(peer: Peer) -> None:
    peer.greet()
    peer.hear()
    peer.say(2, _OK)
    peer.hear()  # SET NAMES
    peer.say(1, _OK)
    peer.hear()
    part = b"x" * 0xFFFFFF
    for number in range(1000):
        peer.say((1 + number) % 256, part)


@pytest.mark.parametrize(
    ("play", "says"),
    [(asks_for_a_file, "local_infile"), (asks_for_the_password, "clear text")],
)
def test_a_hostile_server_gets_no_files_and_no_password(
    play: Callable[[Peer], None], says: str
) -> None:
    with hostile(play) as (url, peers), pytest.raises(QueryFailed, match=says):
        ask(DatabaseTarget("shop", url), "SELECT 1")
    assert peers
    heard = b"".join(peer.heard for peer in peers)
    assert b"ada" in heard
    assert b"root:" not in heard
    assert PASSWORD.encode() not in heard


def test_without_required_tls_a_server_gets_nothing() -> None:
    says = pytest.raises(QueryFailed, match="SSL is required")
    with hostile(Peer.greet) as (url, peers), says:
        ask(DatabaseTarget("shop", f"{url}&sslmode=require"), "SELECT 1")
    assert [peer.heard for peer in peers] == [b""]


def test_a_silent_server_is_abandoned() -> None:
    with hostile(lambda peer: None) as (url, _), pytest.raises(QueryFailed) as failed:
        ask(DatabaseTarget("shop", url), "SELECT 1")
    assert failed.value.code == "connection"


@pytest.mark.slow
def test_an_endless_packet_does_not_fill_a_workers_memory() -> None:
    with hostile(never_ends_a_packet) as (url, _), pytest.raises(QueryFailed) as failed:
        ask(DatabaseTarget("shop", url), "SELECT 1")
    assert failed.value.code in ("memory", "connection", "timeout")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert largest < MEMORY_BYTES + 200 * 1024**2
