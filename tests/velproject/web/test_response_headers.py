"""The headers of responses that the web server creates without Django."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.support.hang import HANG
from tests.support.site import Site, migrated_site

REQUIRED = {
    b"content-security-policy: default-src 'none'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options: nosniff",
    b"x-frame-options: deny",
    b"referrer-policy: same-origin",
    b"cross-origin-opener-policy: same-origin",
    b"cache-control: no-store",
}
HOST = b"Host: localhost\r\n"
END = b"Connection: close\r\n\r\n"
ANSWERS = {
    "garbage": (b"\x00\xff garbage\r\n\r\n", 400),
    "a header without a colon": (b"GET / HTTP/1.1\r\n" + HOST + b"nonsense\r\n" + END, 400),
    "an invalid length": (
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n" + END,
        400,
    ),
    "a header with a bad name": (b"GET / HTTP/1.1\r\n" + HOST + b"a(b: c\r\n" + END, 400),
    "a path that is not ASCII": (b"GET /\xc3\xa4 HTTP/1.1\r\n" + HOST + END, 400),
    "a body that is too long": (
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 999999999\r\n" + END,
        413,
    ),
    "too many headers": (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 2_000 + END, 400),
    "a health check": (b"GET /healthz HTTP/1.1\r\n" + HOST + END, 200),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = migrated_site(tmp_path_factory.mktemp("served"))
    try:
        site.start_server()
        yield site
    finally:
        site.close()


@pytest.mark.parametrize("what", ANSWERS)
def test_the_server_completes_its_own_answers(served: Site, what: str) -> None:
    sent, status = ANSWERS[what]
    with socket.create_connection(("localhost", served.port), timeout=HANG) as client:
        client.sendall(sent)
        answer = b""
        while b"\r\n\r\n" not in answer and (piece := client.recv(65_536)):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    assert first.split()[1] == str(status).encode()
    assert {line.lower() for line in lines} >= REQUIRED
    assert b"<style" not in body
