"""Slow clients, with a real server that has a short patience."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.sync.client import connect as open_websocket

from tests.support.runs import wait_until
from tests.support.site import migrated_site

PATIENCE = 60.0
"""Seconds until a test gives up."""
TOO_SLOW = b"HTTP/1.1 408 "
PACE = 0.05
MANY = int(PATIENCE / PACE)
PIECE = b"x" * 4_000
"""At this pace, several times the required speed."""
LARGE = 40_000_000
"""More than the kernel buffers for a client that does not read."""

SERVER = f"""
import json, socket, sys
from velproject.web.server import PatientServer
from velproject.web.slow_requests import Patience, limit_requests
import django

django.setup()

async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({{"type": "websocket.accept"}})
        while (message := await receive())["type"] == "websocket.receive":
            await send({{"type": "websocket.send", "text": message["text"]}})
        return
    received = 0
    while (message := await receive())["more_body"]:
        received += len(message["body"])
    body = str(received + len(message["body"])).encode()
    if scope["path"] == "/large":
        body = b"x" * {LARGE}
    length = [] if scope["path"] == "/stream" else [(b"content-length", b"%d" % len(body))]
    await send({{"type": "http.response.start", "status": 200, "headers": length}})
    if not length:
        await send({{"type": "http.response.body", "body": b"first", "more_body": True}})
        while (await receive())["type"] != "http.disconnect":
            pass
    await send({{"type": "http.response.body", "body": body}})

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(100)
limit_requests(Patience(**json.loads(sys.argv[1])))
print(listening.getsockname()[1], flush=True)
PatientServer(
    application, endpoints=[f"fd:fileno={{listening.fileno()}}"], signal_handlers=False
).run()
"""
SHORT = '{"idle": 5, "head": 1, "body": 1, "bytes_per_second": 8000, "closing": 2}'


@dataclass
class Web:
    port: int
    pid: int
    files_at_rest: int = 0

    def connect(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        client.sendall(sent)
        return client

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def wait_for_rest(self) -> None:
        """Wait until no file is open for a client."""
        wait_until(lambda: self.open_files() <= self.files_at_rest, "closing all connections")


@contextmanager
def serving(patience: str) -> Iterator[Web]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, patience],
        stdout=subprocess.PIPE,
        text=True,
        env={"DJANGO_SETTINGS_MODULE": "velproject.settings"},
    )
    assert process.stdout is not None
    try:
        yield Web(int(process.stdout.readline()), process.pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving(SHORT) as found:
        with reusable(found):
            found.files_at_rest = found.open_files() - 1
        found.wait_for_rest()
        yield found


def head(path: str = "/", *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


CHUNKED = head("/", "Transfer-Encoding: chunked")
PLAIN = head(method="GET")


def answer(client: socket.socket) -> bytes:
    """Return head and body, which has at least one digit, or empty bytes at a disconnect."""
    found = b""
    while not found.partition(b"\r\n\r\n")[2]:
        piece = client.recv(65_536)
        if not piece:
            break
        found += piece
    return found


def is_answered(client: socket.socket, within: float) -> bool:
    return bool(select.select([client], [], [], within)[0])


def trickle(client: socket.socket, drop: bytes) -> bytes:
    """Send a piece at intervals until the server answers."""
    for _ in range(MANY):
        if is_answered(client, PACE):
            return answer(client)
        client.sendall(drop)
    raise AssertionError("it was never cut")


SLOW = {
    "headers": (b"POST / HTTP/1.1\r\nX-Slow: ", b"x"),
    "many headers": (b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
    "a line that never ends": (b"", b"G"),
    "the handshake of a websocket": (b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nX: ", b"x"),
    "a body of a length": (head("/", "Content-Length: 1000000"), b"x"),
    "a body in chunks": (CHUNKED, b"1\r\nx\r\n"),
    "a body before a websocket": (
        head("/ws", "Upgrade: websocket", "Content-Length: 90000", method="GET"),
        b"x",
    ),
    "a body that began fast": (head("/", "Content-Length: 9000000") + PIECE * 1000, b"x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SLOW)
def test_a_request_sent_byte_by_byte_is_cut(web: Web, what: str) -> None:
    begin, drop = SLOW[what]
    with web.connect(begin) as client:
        assert trickle(client, drop).startswith(TOO_SLOW)
        assert client.recv(1) == b""
    web.wait_for_rest()


@pytest.mark.slow
def test_a_second_request_is_as_limited_as_the_first(web: Web) -> None:
    with web.connect(PLAIN + b"GET / HTTP/1.1\r\nX: ") as client:  # the second one is pipelined
        assert answer(client).startswith(b"HTTP/1.1 200 ")
        assert trickle(client, b"x").startswith(TOO_SLOW)


@pytest.mark.slow
def test_a_connection_without_a_request_is_closed_without_an_answer(web: Web) -> None:
    with web.connect() as silent:
        assert silent.recv(1) == b""


@pytest.mark.slow
def test_a_client_that_does_not_read_the_end_is_cut(web: Web) -> None:
    with web.connect(b"GET /large HTTP/1.0\r\n\r\n") as client:
        assert is_answered(client, PATIENCE)
        web.wait_for_rest()


@pytest.mark.slow
def test_a_slow_honest_request_is_not_cut(web: Web) -> None:
    """These connections are opened before one that trickles, and must still work after its end."""
    with ExitStack() as stack:
        upload = stack.enter_context(web.connect(CHUNKED))
        stream = stack.enter_context(web.connect(head("/stream", method="GET")))
        assert b"first" in answer(stream)
        websocket = stack.enter_context(open_websocket(f"ws://127.0.0.1:{web.port}/ws"))
        reused = stack.enter_context(reusable(web))
        slow = stack.enter_context(web.connect(CHUNKED))

        sent = 0
        while not is_answered(slow, PACE):
            assert sent < MANY * len(PIECE), "it was never cut"
            slow.sendall(b"1\r\nx\r\n")
            upload.sendall(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))
            sent += len(PIECE)

        assert answer(slow).startswith(TOO_SLOW)
        upload.sendall(b"0\r\n\r\n")
        assert answer(upload).endswith(b"\r\n\r\n%d" % sent)
        assert not is_answered(stream, 0)  # neither the rest nor the end
        websocket.send("still here")
        assert websocket.recv(timeout=PATIENCE) == "still here"
        reused.sendall(PLAIN)
        assert answer(reused).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
def test_the_longest_idle_connection_makes_room() -> None:
    with serving('{"connections": 3}') as web, ExitStack() as stack:
        first, second, third = (stack.enter_context(reusable(web)) for _ in range(3))
        first.sendall(PLAIN)
        assert answer(first).startswith(b"HTTP/1.1 200 ")  # the last one with activity
        with web.connect(PLAIN) as client:
            assert answer(client).startswith(b"HTTP/1.1 200 ")
        assert second.recv(1) == b""
        for client in (third, first):
            client.sendall(PLAIN)
            assert answer(client).startswith(b"HTTP/1.1 200 ")


def reusable(web: Web, path: str = "/") -> socket.socket:
    """Return a connection that has had an answer and waits for the next request."""
    client = web.connect(head(path, method="GET"))
    assert answer(client).startswith(b"HTTP/1.1 200 ")
    return client


@pytest.mark.slow
def test_streams_and_sockets_are_not_closed_to_make_room() -> None:
    with serving('{"connections": 2}') as web, ExitStack() as stack:
        websocket = stack.enter_context(open_websocket(f"ws://127.0.0.1:{web.port}/ws"))
        with web.connect(head("/stream", method="GET")) as stream:
            assert b"first" in answer(stream)
            with web.connect() as refused:
                assert refused.recv(1) == b""
            assert not is_answered(stream, 0)
            websocket.send("still here")
            assert websocket.recv(timeout=PATIENCE) == "still here"
            websocket.close()
            # Its place is free, even though its first HTTP channel never ended.
            wait_until(lambda: _serves(web), "letting somebody in")


def _serves(web: Web) -> bool:
    try:
        with web.connect(PLAIN) as client:
            return answer(client).startswith(b"HTTP/1.1 200 ")
    except ConnectionError:
        return False


@pytest.mark.slow
def test_the_web_process_of_vel_up_keeps_these_limits(tmp_path: Path) -> None:
    site = migrated_site(tmp_path)
    site.environment["VEL_CONNECTIONS"] = "2"
    try:
        site.start_server()
        web = Web(site.port, site.server_pid)
        with ExitStack() as stack:
            first, *_ = [stack.enter_context(reusable(web, "/login/")) for _ in range(3)]
            while first.recv(65_536):  # the rest of the page, then the end
                pass
    finally:
        site.close()
