"""The proxy with hostile clients, names and servers, without a sandbox."""

import os
import socket
import ssl
import threading
from ipaddress import ip_address

import pytest

from sandbox.linux.egress.connection import EgressLimits, NotUnderstood, server_name
from sandbox.linux.egress.hosts import Address
from tests.sandbox.linux.egress.world import (
    Loopback,
    Names,
    echo,
    everything,
    plain_server,
    proxy,
    web_server,
)
from tests.sandbox.places import until
from tests.support.hang import HANG


def client_hello(name: str | None) -> bytes:
    """Return a client hello in the form of OpenSSL."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def connect(host: str) -> bytes:
    return f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def test_get_and_post_go_through() -> None:
    with web_server() as (port, _), proxy(f"web.test:{port}") as by_hand:
        url = f"http://web.test:{port}"
        answer = by_hand.ask(f"GET {url}/x HTTP/1.1\r\n\r\n".encode())
        assert answer.endswith(b"\r\n\r\nhello from web.test\n")
        post = f"POST {url}/ HTTP/1.1\r\n".encode()
        answer = by_hand.ask(post + b"Content-Length: 3\r\n\r\nabc")
        assert answer.endswith(b"3 abc")
        chunks = b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n02\r\nde\r\n0\r\nT: x\r\n\r\n"
        assert by_hand.ask(post + chunks).endswith(b"5 abcde")
    [row] = by_hand.proxy.connections()
    assert (row.host, row.port, row.allowed, row.count) == ("web.test", port, True, 3)
    assert row.sent > 3
    assert row.received > 3


def test_a_second_request_on_a_connection_is_not_forwarded() -> None:
    with web_server() as (port, seen), proxy(f"web.test:{port}") as by_hand:
        get = f"GET http://web.test:{port}/%s HTTP/1.1\r\n\r\n"
        by_hand.ask((get % "first" + get % "second").encode())
        body = f"POST http://web.test:{port}/ HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"
        by_hand.ask((body + "GET /smuggled HTTP/1.1\r\nHost: inner\r\n\r\n").encode())
        assert seen == [b"GET /first HTTP/1.1\r\n", b"POST / HTTP/1.1\r\n"]


@pytest.mark.parametrize("body", [b"zz\r\n", b"-1\r\n", b"0x1\r\n", b"1\r\nabc\r\n", b"1\nx\n\r\n"])
def test_a_body_with_bad_chunks_is_cut_off(body: bytes) -> None:
    with web_server() as (port, _), proxy(f"web.test:{port}") as by_hand:
        head = f"POST http://web.test:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert by_hand.ask(head.encode() + body) == b""
    assert "chunk" in by_hand.proxy.connections()[0].reason


def test_a_tunnel_passes_both_ways_and_half_closes() -> None:
    with (
        plain_server(echo) as port,
        proxy(f"ssh.test:{port}") as by_hand,
        by_hand.connect() as client,
    ):
        client.sendall(connect(f"ssh.test:{port}") + b"early ")
        client.sendall(b"late")
        client.shutdown(socket.SHUT_WR)
        answer = everything(client)
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\nearly late"
    assert by_hand.proxy.connections()[0].sent == 10


def test_a_server_can_send_first() -> None:
    greet = plain_server(lambda peer: peer.sendall(b"SSH-2.0\r\n"))
    with greet as port, proxy(f"ssh.test:{port}") as by_hand:
        assert by_hand.ask(connect(f"ssh.test:{port}")).endswith(b"SSH-2.0\r\n")


def test_tls_must_ask_for_the_name_of_the_tunnel() -> None:
    with plain_server(echo) as port, proxy(f"a.test:{port}") as by_hand:
        right = client_hello("a.test")
        for cut in (1, 5, 100, len(right)):
            with by_hand.connect() as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.sendall(connect(f"a.test:{port}") + right[:cut])
                client.sendall(right[cut:])
                client.shutdown(socket.SHUT_WR)
                assert everything(client).endswith(right)
        for wrong in (client_hello("b.test"), client_hello(None), right[:50], b"\x16garbage" * 9):
            with by_hand.connect() as client:
                client.sendall(connect(f"a.test:{port}") + wrong)
                client.shutdown(socket.SHUT_WR)
                assert everything(client) == b"HTTP/1.1 200 Connection established\r\n\r\n"
    reasons = {row.reason for row in by_hand.proxy.connections() if not row.allowed}
    assert "TLS for a server name that is not the name of the tunnel" in reasons
    assert all(not row.sent for row in by_hand.proxy.connections() if not row.allowed)


def test_a_hello_in_several_records_is_joined() -> None:
    whole = client_hello("a.test")[5:]
    records = b"".join(
        b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (whole[:7], whole[7:])
    )
    assert server_name(records) == "a.test"
    assert server_name(records[:-1]) is None
    with pytest.raises(NotUnderstood):
        server_name(b"\x16\x03\x01\x40\x00" + b"\x01\x00\xff\xff" + b"\0" * 40000)


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["93.184.216.34", "10.0.0.1"],
        ["fd00:ec2::254"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["0.0.0.0"],
        ["::1"],
    ],
)
@pytest.mark.parametrize("network", ["allowlist", "full"])
def test_an_allowed_name_with_a_private_address_is_refused(
    answers: list[str], network: str
) -> None:
    hosts = ["name.test"] if network == "allowlist" else []
    with proxy(*hosts, world=Names(answers)) as by_hand:
        for request in (b"GET http://name.test/ HTTP/1.1\r\n\r\n", connect("name.test:443")):
            answer = by_hand.ask(request)
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert b"not public" in answer
    assert not any(row.allowed for row in by_hand.proxy.connections())


class Rebinding(Names):
    """First an allowed address, then loopback, where a server listens."""

    def refusal(self, address: Address) -> str | None:
        return None if address == ip_address("127.0.0.9") else super().refusal(address)


def test_a_name_with_changing_addresses_is_resolved_once() -> None:
    with web_server() as (port, seen):
        world = Rebinding(["127.0.0.9"], ["127.0.0.1"])
        with proxy(f"evil.test:{port}", world=world) as by_hand:
            first = by_hand.ask(f"GET http://evil.test:{port}/1 HTTP/1.1\r\n\r\n".encode())
            assert world.asked == ["evil.test"]
            assert first.startswith(b"HTTP/1.1 502 ")  # there is no server at 127.0.0.9
            second = by_hand.ask(f"GET http://evil.test:{port}/2 HTTP/1.1\r\n\r\n".encode())
            assert second.startswith(b"HTTP/1.1 403 ")
        assert seen == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "169.254.169.254"),
        *("0.0.0.0", "10.0.0.1", "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[fe80::1]"),
        *("2130706433", "0x7f.1", "127.1", "localhost", "127.0.0.1.", "[fe80::1%25lo]"),
    ],
)
def test_full_never_means_this_host_or_its_networks(host: str) -> None:
    with web_server() as (port, seen), proxy(world=Names(["127.0.0.1"])) as by_hand:
        for request in (
            f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode(),
            connect(f"{host}:{port}"),
        ):
            assert by_hand.ask(request).split()[1] in (b"400", b"403")
        assert seen == []
    assert not any(row.allowed for row in by_hand.proxy.connections())


def test_huge_heads_and_slow_ones_end() -> None:
    with proxy("a.test", limits=EgressLimits(head_seconds=0.2)) as by_hand:
        huge = b"GET http://a.test/ HTTP/1.1\r\nA: " + b"x" * 200_000
        assert by_hand.ask(huge + b"\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        with by_hand.connect() as slow:
            slow.sendall(b"GET http://a.test/ HTTP/1.1\r\n")
            assert everything(slow).startswith(b"HTTP/1.1 408 ")


def test_an_idle_tunnel_is_closed_and_bytes_are_limited() -> None:
    with plain_server(echo) as port:
        with proxy(f"a.test:{port}", limits=EgressLimits(idle_seconds=0.2)) as by_hand:
            assert by_hand.ask(connect(f"a.test:{port}")).endswith(b"\r\n\r\n")
            assert by_hand.ask(connect(f"a.test:{port}") + b"x").endswith(b"\r\n\r\nx")
        assert all("without a byte" in row.reason for row in by_hand.proxy.connections())
        with proxy(f"a.test:{port}", limits=EgressLimits(bytes=10_000)) as by_hand:
            answer = by_hand.ask(connect(f"a.test:{port}") + b"x" * 8000)
            assert len(answer) < 10_000
        assert "limit of 10,000 bytes" in by_hand.proxy.connections()[0].reason


def test_many_connections_wait_and_use_few_descriptors() -> None:
    """300 clients send nothing: the proxy accepts 4 at a time, and later serves a real client."""
    limits = EgressLimits(connections=4, head_seconds=20)
    with web_server() as (port, _), proxy(f"web.test:{port}", limits=limits) as by_hand:
        before = len(os.listdir("/proc/self/fd"))
        silent = [by_hand.connect() for _ in range(300)]
        assert len(os.listdir("/proc/self/fd")) < before + 300 + 60
        for client in silent:
            client.close()
        answer = by_hand.ask(f"GET http://web.test:{port}/ HTTP/1.1\r\n\r\n".encode())
        assert answer.endswith(b"hello from web.test\n")


def test_the_log_is_bounded() -> None:
    with proxy("a.test") as by_hand:
        for number in range(120):
            by_hand.ask(connect(f"n{number}.test:443"))
    rows = by_hand.proxy.connections()
    assert len(rows) == 101
    assert (rows[-1].host, rows[-1].count) == ("(others)", 20)


def test_the_end_of_the_proxy_waits_for_nothing() -> None:
    """Neither an open tunnel nor a hanging look-up delays it."""
    hanging = threading.Event()

    class Hanging(Loopback):
        def resolve(self, name: str) -> list[Address]:
            if name == "slow.test":
                hanging.wait(HANG)
            return super().resolve(name)

    before = len(os.listdir("/proc/self/fd"))
    with plain_server(echo) as port:
        with proxy(f"a.test:{port}", "slow.test", world=Hanging()) as by_hand:
            tunnel, lookup = by_hand.connect(), by_hand.connect()
            tunnel.sendall(connect(f"a.test:{port}") + b"x")
            assert tunnel.recv(100).startswith(b"HTTP/1.1 200")
            lookup.sendall(connect("slow.test:443"))
        assert everything(tunnel) in (b"", b"x")
        assert everything(lookup) == b""
        tunnel.close()
        lookup.close()
    hanging.set()
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)
    reasons = [row.reason for row in by_hand.proxy.connections()]
    assert sorted(reasons)[0] == "allowed"
