"""Connections to a name: resolve it once, check every address, and use only checked addresses.

This module has its own list of public addresses, because `ipaddress` differs between Python
versions. The source is the IANA special-purpose registries. All addresses outside global unicast
are refused.

Through rtnetlink, the module asks the kernel for its route to an address. Unlike a list of the
interfaces' addresses, the answer is never out of date, and includes whole networks that are routed
to this host itself.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Protocol

from sandbox.linux.egress.hosts import Address, Endpoint


class Destinations(Protocol):
    """Interface of the network that a proxy can use. Only code can replace it; no setting can."""

    def resolve(self, name: str) -> list[Address]:
        """Return all addresses of a name. Blocks. Raises OSError if the name has no address."""

    def refusal(self, address: Address) -> str | None:
        """Return why a connection to `address` is refused; None if it is allowed."""


class PublicInternet:
    """The public internet, without any address of this host itself."""

    def resolve(self, name: str) -> list[Address]:
        # The final dot disables the host's search domains, such as `name.corp.internal`.
        found = socket.getaddrinfo(
            f"{name}.", None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        addresses = [ip_address(str(entry[4][0])) for entry in found]
        return list(dict.fromkeys(addresses))

    def refusal(self, address: Address) -> str | None:
        kind = special_purpose(address)
        if kind is not None:
            return f"its address is not public ({kind})"
        try:
            route = route_type(address)
        except OSError as error:
            return f"this host has no route to it ({error.strerror or error})"
        if route == RouteType.UNICAST:
            return None
        if route == RouteType.LOCAL:
            return "its address belongs to this host"
        return "its address is not a host"


_LOOKUPS = threading.BoundedSemaphore(64)
"""The limit of this process: a look-up cannot be interrupted and may take half a minute."""

_MOST_ADDRESSES = 4
"""How many addresses are tried, one after another."""


class Unreachable(Exception):
    """Raised if no connection is possible.

    `forbidden` is True if the connection was refused without a try.
    """

    def __init__(self, reason: str, *, forbidden: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.forbidden = forbidden


async def dial(endpoint: Endpoint, world: Destinations, seconds: float) -> socket.socket:
    """Return a non-blocking socket that is connected to `endpoint`.

    All addresses of its name must be allowed. No name is resolved after this check, so a name that
    changes its address has no effect. `seconds` limits the look-up and the connection together.

    Raises:
        Unreachable: An address is refused, or no connection is possible.
    """
    try:
        async with asyncio.timeout(seconds):
            addresses = await _addresses(endpoint, world)
            for address in addresses:
                refusal = world.refusal(address)
                if refusal is not None:
                    raise Unreachable(refusal, forbidden=True)
            return await _connect(addresses, endpoint.port)
    except TimeoutError:
        raise Unreachable(f"no connection within {seconds:g} s", forbidden=False) from None


async def _addresses(endpoint: Endpoint, world: Destinations) -> list[Address]:
    if endpoint.address is not None:
        return [endpoint.address]
    try:
        addresses = await _off_the_loop(lambda: world.resolve(endpoint.host))
    except OSError as error:
        raise Unreachable(f"its name has no address ({error.strerror})", forbidden=False) from error
    if not addresses:
        raise Unreachable("its name has no address", forbidden=False)
    return addresses


async def _connect(addresses: list[Address], port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    problem = ""
    for address in addresses[:_MOST_ADDRESSES]:
        family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
        try:
            connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            problem = error.strerror or str(error)
            continue
        try:
            await loop.sock_connect(connection, (str(address), port))
        except OSError as error:
            connection.close()
            problem = error.strerror or str(error)
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise Unreachable(f"no connection ({problem})", forbidden=False)


async def _off_the_loop(function: Callable[[], list[Address]]) -> list[Address]:
    """Run a blocking function in a daemon thread, because the command may end before it returns."""
    if not _LOOKUPS.acquire(blocking=False):
        raise Unreachable("too many simultaneous name look-ups", forbidden=False)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Address]] = loop.create_future()

    def deliver(addresses: list[Address] | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(addresses or [])

    def work() -> None:
        addresses: list[Address] | None = None
        failure: Exception | None = None
        try:
            addresses = function()
        except Exception as error:  # noqa: BLE001 - raised again in the waiting task
            failure = error
        finally:
            _LOOKUPS.release()
        try:
            loop.call_soon_threadsafe(deliver, addresses, failure)
        except RuntimeError:
            pass  # the event loop is closed: the command has ended

    try:
        threading.Thread(target=work, name="vel-egress-lookup", daemon=True).start()
    except RuntimeError:
        _LOOKUPS.release()
        raise
    return await answer


_IPV4 = {
    "0.0.0.0/8": "this host",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared address space (CGNAT)",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "a cloud's metadata service",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "6to4 relay",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
_IPV6 = {
    # Teredo, ORCHID, benchmarking and other special protocols.
    "2001::/23": "reserved or a tunnel (Teredo)",
    "2001:db8::/32": "documentation",
    "2002::/16": "a tunnel (6to4)",
    "3fff::/20": "documentation",
}
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)

_IPV4_REFUSED = [(IPv4Network(network), why) for network, why in _IPV4.items()]
_IPV6_REFUSED = [(IPv6Network(network), why) for network, why in _IPV6.items()]


def special_purpose(address: Address) -> str | None:
    """Return the kind of a non-public address, such as "loopback"; None for a public one."""
    if isinstance(address, IPv4Address):
        return next((why for network, why in _IPV4_REFUSED if address in network), None)
    return _special_ipv6(address)


def _special_ipv6(address: IPv6Address) -> str | None:
    if address.scope_id is not None:
        return "an address with a zone"
    if address in _NAT64:  # the form of public IPv4 addresses on an IPv6-only host
        return special_purpose(IPv4Address(int(address) & 0xFFFFFFFF))
    if address not in _GLOBAL_UNICAST:
        # Loopback, link-local, unique local, multicast, IPv4-mapped, local NAT64 and the rest.
        return "loopback" if address.is_loopback else "not global unicast"
    for network, why in _IPV6_REFUSED:
        if address in network:
            return why
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return "a tunnel (ISATAP)"
    return None


_GET_ROUTE, _NEW_ROUTE, _ERROR, _REQUEST, _DESTINATION = 26, 24, 2, 1, 1
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ROUTE = struct.Struct("=BBBBBBBBI")  # family, bits, …, type (the eighth), flags
_SECONDS = 5.0


class RouteType(IntEnum):
    UNICAST = 1
    LOCAL = 2


def route_type(address: Address) -> int:
    """Return the kernel's RTN_ constant for its route to `address`.

    Raises OSError if there is no route.
    """
    version4 = isinstance(address, IPv4Address)
    family = socket.AF_INET if version4 else socket.AF_INET6
    packed = address.packed
    body = _ROUTE.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, 0)
    body += struct.pack("=HH", 4 + len(packed), _DESTINATION) + packed
    message = _HEADER.pack(_HEADER.size + len(body), _GET_ROUTE, _REQUEST, 1, 0) + body
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(message)
        answer = kernel.recv(65536)
    _, answered, *_ = _HEADER.unpack_from(answer)
    if answered == _ERROR:
        number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        raise OSError(number, os.strerror(number))
    if answered != _NEW_ROUTE:
        raise OSError(f"The kernel answered a route query with the message type {answered}.")
    found: int = _ROUTE.unpack_from(answer, _HEADER.size)[7]
    return found
