"""Names to addresses, and the check of every address that a connection is to be made to."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Protocol

from sandbox.egress.addresses import special_purpose
from sandbox.egress.hosts import Address
from sandbox.egress.routes import RouteType, route_type


class Destinations(Protocol):
    """The world as a proxy sees it. Only code can pass another one: no setting does."""

    def resolve(self, name: str) -> list[Address]:
        """All addresses of a name; blocks. Raises OSError when there are none."""

    def refusal(self, address: Address) -> str | None:
        """Why there may be no connection to `address`; None when there may."""


class PublicInternet:
    """Public addresses only, and never one that leads to this host itself."""

    def resolve(self, name: str) -> list[Address]:
        # The dot at the end keeps the host's search domains out: no `name.corp.internal`.
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
        return "its address is this host's own" if route == RouteType.LOCAL else "it is no host"
