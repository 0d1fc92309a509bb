"""The parser of requests refuses ambiguous requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.linux.egress.request import RequestRefused, parse_request

GET = b"GET http://example.org/a?b=c HTTP/1.1"

REFUSED = [
    GET + b"\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
    GET + b"\r\nContent-Length: 3\r\nContent-Length: 4",
    GET + b"\r\nContent-Length: 3\r\nContent-Length: 3",
    GET + b"\r\nContent-Length: 3, 3",
    GET + b"\r\nContent-Length: +3",
    GET + b"\r\nContent-Length: -1",
    GET + b"\r\nContent-Length: 0x3",
    GET + b"\r\nContent-Length: " + b"9" * 30,
    GET + b"\r\nTransfer-Encoding: chunked, identity",
    GET + b"\r\nTransfer-Encoding: xchunked",
    GET + b"\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    GET + b"\r\nTransfer-Encoding: \x0bchunked",
    GET + b"\r\nTransfer-Encoding : chunked",
    GET + b"\r\n Transfer-Encoding: chunked",
    GET + b"\r\nA: b\r\n folded",
    GET + b"\r\nA: b\nTransfer-Encoding: chunked",
    GET + b"\r\nA: b\rTransfer-Encoding: chunked",
    GET + b"\r\nA: b\0c",
    GET + b"\r\nno colon",
    GET + b"\r\n: empty",
    GET + b"\r\nHost: example.com",
    GET + b"\r\nHost: example.org\r\nHost: example.org",
    GET + b"\r\nHost: example.org:81",
    GET + b"\r\nA: b" * 101,
    b"GET http://user:pw@example.org/ HTTP/1.1",
    b"GET http://allowed.org\\@evil.org/ HTTP/1.1",
    b"GET http://2130706433/ HTTP/1.1",
    b"GET http://example.org/#fragment HTTP/1.1",
    b"GET https://example.org/ HTTP/1.1",
    b"GET ftp://example.org/ HTTP/1.1",
    b"GET / HTTP/1.1\r\nHost: example.org",
    b"GET  http://example.org/ HTTP/1.1",
    b"GET http://example.org/ HTTP/1.1 ",
    b"GET http://example.org/ x HTTP/1.1",
    b"GET\thttp://example.org/\tHTTP/1.1",
    b"get http://example.org/ HTTP/1.1",
    b"GET http://example.org/ HTTP/2.0",
    b"GET http://example.org/",
    b"\r\n" + GET,
    b"CONNECT example.org HTTP/1.1",
    b"CONNECT http://example.org:443 HTTP/1.1",
    b"CONNECT example.org:443/path HTTP/1.1",
    b"CONNECT example.org:443 HTTP/1.1\r\nContent-Length: 5",
    b"CONNECT example.org:443 HTTP/1.1\r\nTransfer-Encoding: chunked",
    b"POST http://example.org/ HTTP/1.0\r\nTransfer-Encoding: chunked",
    b"\x16\x03\x01\x02\x00",
    b"",
]


@pytest.mark.parametrize("head", REFUSED)
def test_refused(head: bytes) -> None:
    with pytest.raises(RequestRefused):
        parse_request(head)


def test_forwarded_requests_are_written_again() -> None:
    request = parse_request(
        GET + b"\r\nhost: EXAMPLE.org:80\r\nProxy-Authorization: secret\r\nX-One: 1\r\n"
        b"Connection: keep-alive, X-One\r\nUpgrade: websocket\r\nX-Two:  2 \r\nContent-Length: 03"
    )
    assert request.head == (
        b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-Two: 2\r\nContent-Length: 3\r\n"
        b"Connection: close\r\n\r\n"
    )
    assert (request.length, request.connect) == (3, False)
    assert parse_request(b"GET http://example.org?x HTTP/1.1").head.startswith(b"GET /?x ")


def test_naming_the_framing_in_connection_does_not_remove_it() -> None:
    head = b"POST http://example.org/ HTTP/1.1\r\nConnection: host, content-length\r\n"
    request = parse_request(head + b"Content-Length: 9")
    assert b"Host: example.org\r\n" in request.head
    assert b"Content-Length: 9\r\n" in request.head


@given(st.binary(max_size=200), st.sampled_from([*REFUSED, GET + b"\r\nContent-Length: 3"]))
def test_any_bytes_are_parsed_or_refused(noise: bytes, head: bytes) -> None:
    for data in (noise, head + noise, head[: len(noise)] + noise):
        try:
            request = parse_request(data)
        except RequestRefused:
            continue
        assert request.connect or request.head.count(b"\r\n\r\n") == 1
        assert b"\n" not in request.head.replace(b"\r\n", b"")
