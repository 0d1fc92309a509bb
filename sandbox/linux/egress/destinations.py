"""Resolve names to addresses, and check every address before a connection."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Protocol

from sandbox.linux.egress.addresses import special_purpose
from sandbox.linux.egress.hosts import Address
from sandbox.linux.egress.routes import RouteType, route_type


class Destinations(Protocol):
    """The network as a proxy sees it. Only code can replace it; there is no setting."""

    def resolve(self, name: str) -> list[Address]:
        """All addresses of a name; blocks. Raises OSError if it has none."""

    def refusal(self, address: Address) -> str | None:
        """Why a connection to `address` is refused; None if it is allowed."""


class PublicInternet:
    """Public addresses only, and never an address of this host itself."""

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
