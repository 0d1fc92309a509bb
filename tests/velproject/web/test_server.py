"""Clients that read slowly or not at all."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from websockets.sync.client import connect

from tests.support.hang import HANG

PARTS = 4000
PART_BYTES = 16_384
STALLED_SECONDS = 5.0
HELD_BYTES = 24_000_000
"""More than the kernel's buffers hold, and less than the whole response."""

SERVER = f"""
import socket, sys
from velproject.web import server as web_server
web_server.STALLED_SECONDS = {STALLED_SECONDS}
sent, ended = [0], [0]

async def application(scope, receive, send):
    if scope["type"] == "http" and scope["path"] == "/sent":
        await send({{"type": "http.response.start", "status": 200, "headers": []}})
        body = f"{{sent[0]}} {{ended[0]}}".encode()
        await send({{"type": "http.response.body", "body": body}})
        return
    sent[0] = 0
    part = b"x" * {PART_BYTES}
    if scope["type"] == "http":
        await send({{"type": "http.response.start", "status": 200, "headers": []}})
        message = {{"type": "http.response.body", "body": part, "more_body": True}}
    else:
        await receive()
        await send({{"type": "websocket.accept"}})
        message = {{"type": "websocket.send", "bytes": part}}
    for _ in range({PARTS}):
        await send(message)
        sent[0] += 1
    if scope["type"] == "http":
        await send({{"type": "http.response.body", "body": b""}})
    else:
        await send({{"type": "websocket.close"}})
    ended[0] += 1

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
print(listening.getsockname()[1], flush=True)
web_server.PatientServer(
    application, endpoints=[f"fd:fileno={{listening.fileno()}}"], signal_handlers=False
).run()
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def sent(port: int) -> tuple[int, int]:
    """Return the parts sent to the last reader, and the number of ended streams."""
    with urlopen(f"http://127.0.0.1:{port}/sent", timeout=HANG) as answer:
        parts, ended = answer.read().split()
    return int(parts), int(ended)


def sent_at_last(port: int) -> int:
    """Return the same numbers when they have stopped growing."""
    parts, _ = sent(port)
    deadline = time.monotonic() + HANG
    while time.monotonic() < deadline:
        time.sleep(0.2)
        before, (parts, _) = parts, sent(port)
        if parts == before and parts:
            return parts
    raise AssertionError("it never stopped sending")


def ask(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=HANG)
    client.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
    return client


def read_all(client: socket.socket) -> int:
    """Return the bytes until the end."""
    return sum(len(part) for part in iter(lambda: client.recv(2**20), b""))


@pytest.mark.slow
def test_a_stream_waits_for_its_reader_and_loses_nothing(port: int) -> None:
    _, ended = sent(port)
    with ask(port) as client:
        assert sent_at_last(port) * PART_BYTES < HELD_BYTES

        assert read_all(client) > PARTS * PART_BYTES
    assert sent(port) == (PARTS, ended + 1)


@pytest.mark.slow
def test_a_socket_waits_for_its_reader_and_loses_nothing(port: int) -> None:
    with connect(f"ws://127.0.0.1:{port}/", open_timeout=HANG, max_queue=1) as client:
        assert sent_at_last(port) * PART_BYTES < HELD_BYTES

        assert sum(len(part) for part in client) == PARTS * PART_BYTES


@pytest.mark.slow
def test_a_client_that_never_reads_is_cut_off(port: int) -> None:
    _, ended = sent(port)
    with ask(port) as client:
        assert sent_at_last(port) < PARTS
        deadline = time.monotonic() + HANG
        # The server drops data for a closed connection, and the application reaches its end.
        while sent(port) != (PARTS, ended + 1):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with pytest.raises(ConnectionResetError):
            read_all(client)
