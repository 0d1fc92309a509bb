"""Requests to Google end at their deadline, however slowly the server sends."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from agents.features.google_workspace.client.errors import GoogleFailed
from agents.features.google_workspace.client.http import ask
from tests.support.hang import HANG

PIECES = 200
PAUSE = 0.05


@contextmanager
def slow_server(start: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Answer a request with `start` and then slowly, in pieces. Yield the URL and sent bytes."""
    sent: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(start)
            for _ in range(PIECES):
                time.sleep(PAUSE)  # slower than the deadline, faster than a timeout of the socket
                connection.sendall(b"x")
                sent.append(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", sent
        thread.join(HANG)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 1000\r\n\r\n",
    ],
)
def test_a_slow_answer_ends_at_the_deadline(start: bytes) -> None:
    with slow_server(start) as (url, sent), pytest.raises(GoogleFailed, match="TimeoutError"):
        ask("GET", url, headers={}, until=time.monotonic() + 1)
    assert len(sent) < PIECES
