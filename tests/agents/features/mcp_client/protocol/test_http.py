"""Servers over HTTP: allowed addresses, and time limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address

import httpcore2
import httpx2
import pytest

from agents.features.mcp_client.protocol.connection import Connection
from agents.features.mcp_client.protocol.errors import McpError
from agents.features.mcp_client.protocol.http import CheckedTransport, HttpTransport
from agents.features.mcp_client.protocol.transport import HttpTarget
from agents.services.outside_address import PrivateHosts
from sandbox.linux.egress.dialling import Destinations, PublicInternet
from sandbox.linux.egress.hosts import Address, Endpoint
from tests.support.hang import HANG
from tests.support.mcp_http import plain_http_server, real_server


def connection_to(
    url: str,
    world: Destinations | None = None,
    host: str = "127.0.0.1",
    headers: dict[str, str] | None = None,
) -> Connection:
    port = int(url.split(":")[2].split("/")[0])
    address = ip_address(host) if host[0].isdigit() else None
    target = HttpTarget(
        url.replace("127.0.0.1", host),
        Endpoint(host, port, address),
        None,
        world or PrivateHosts(),
        headers or {},
    )
    return Connection("far", HttpTransport(target))


@contextmanager
def opened(url: str, **more: object) -> Iterator[Connection]:
    connection = connection_to(url, **more)  # type: ignore[arg-type]
    try:
        connection.open().result(HANG)
        yield connection
    finally:
        connection.close()
        connection.join()
        assert not connection._thread.is_alive()


def test_a_real_server_lists_and_answers() -> None:
    with real_server() as url, opened(url) as connection:
        (tool,) = connection.listing().result(HANG).tools
        assert (tool.name, tool.description) == ("add", "Add two numbers.")
        result = connection.call("add", {"a": 20, "b": 22}, 20).result(HANG)
        assert result["structuredContent"] == {"result": 42}


def test_headers_are_sent_and_no_other_requests_are_made() -> None:
    with plain_http_server() as asked:
        with opened(asked.url, headers={"Authorization": "Bearer abc"}) as connection:
            connection.listing().result(HANG)
        assert {each["authorization"] for each in asked.headers} == {"Bearer abc"}
        assert {each["accept-encoding"] for each in asked.headers} == {"identity"}
        assert asked.methods[-1] == "tools/list"


def problem_with(mode: str, seconds: float = 20.0) -> McpError:
    with plain_http_server(mode) as asked, opened(asked.url) as connection:
        with pytest.raises(McpError) as caught:
            connection.call("say", {}, seconds).result(HANG)
        return caught.value


def test_an_answer_without_end_is_cut_off() -> None:
    assert "answer of over 8,388,608 bytes" in problem_with("huge").message


def test_events_without_end_are_cut_off() -> None:
    assert "without end" in problem_with("events").message


@pytest.mark.slow
def test_a_stream_that_stays_silent_is_given_up_in_time() -> None:
    assert problem_with("silent", 0.5).code == "timeout"


def test_a_compressed_answer_is_refused() -> None:
    assert "compresses" in problem_with("zipped").message


def test_a_redirect_to_another_place_is_not_followed() -> None:
    with plain_http_server() as other, plain_http_server("redirect", other.url) as asked:
        connection = connection_to(asked.url)
        with pytest.raises(McpError, match="leads to another place"):
            connection.open().result(HANG)
        connection.join()
        assert other.methods == []


def test_loopback_is_refused_where_it_is_not_listed() -> None:
    with plain_http_server() as asked:
        connection = connection_to(asked.url, PublicInternet())
        with pytest.raises(McpError, match=r"not public .loopback"):
            connection.open().result(HANG)
        connection.join()
        assert asked.methods == []


class Rebinding(PublicInternet):
    """A name that resolves to a public address first, and to this host on the second look-up."""

    def __init__(self) -> None:
        self.looked = 0

    def resolve(self, name: str) -> list[Address]:
        self.looked += 1
        return [ip_address("192.0.2.1" if self.looked == 1 else "127.0.0.1")]

    def refusal(self, address: Address) -> str | None:
        return None if str(address).startswith("192.") else super().refusal(address)


def test_dns_rebinding_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[str] = []

    async def connect(self: object, host: str, port: int, *more: object) -> None:
        connected.append(host)
        raise httpcore2.ConnectError("nobody there")

    monkeypatch.setattr("httpcore2.AnyIOBackend.connect_tcp", connect)
    with plain_http_server() as asked:
        world = Rebinding()
        connection = connection_to(asked.url, world, "rebind.example.org")
        with pytest.raises(McpError, match=r"no connection|not public"):
            connection.open().result(HANG)
        connection.join()
        assert world.looked >= 1
        assert set(connected) == {"192.0.2.1"}
        assert asked.methods == []


def test_one_bad_address_among_good_ones_is_enough() -> None:
    class Mixed(Rebinding):
        def resolve(self, name: str) -> list[Address]:
            return [ip_address("192.0.2.1"), ip_address("127.0.0.1")]

    with plain_http_server() as asked:
        connection = connection_to(asked.url, Mixed(), "mixed.example.org")
        with pytest.raises(McpError, match="loopback"):
            connection.open().result(HANG)
        connection.join()


def test_the_client_connects_only_to_one_origin() -> None:
    told: list[str] = []

    async def ask(url: str) -> int:
        endpoint = Endpoint("127.0.0.1", port, ip_address("127.0.0.1"))
        target = HttpTarget(f"http://127.0.0.1:{port}/mcp", endpoint, None, PrivateHosts())
        async with httpx2.AsyncClient(transport=CheckedTransport(target, told.append)) as client:
            return (await client.post(url, json={"method": "x"})).status_code

    with plain_http_server() as asked, plain_http_server() as other:
        port = int(asked.url.split(":")[2].split("/")[0])
        assert asyncio.run(ask(asked.url)) == 202
        with pytest.raises(httpx2.ConnectError, match="another origin"):
            asyncio.run(ask(other.url))
        assert other.methods == []
    assert told == ["it leads to another place, which is not followed"]
