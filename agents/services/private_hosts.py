"""Hosts of the operator's own network, each named by the operator."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

from sandbox.linux.egress.hosts import Address

_METADATA = IPv4Address("168.63.129.16")


class PrivateHosts:
    """Names as this host resolves them, to any address except those that no host has.

    Link-local addresses are refused: clouds serve credentials at one, and the addresses of a name
    can change after it was listed.
    """

    def resolve(self, name: str) -> list[Address]:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        return list(dict.fromkeys(ip_address(str(entry[4][0])) for entry in found))

    def refusal(self, address: Address) -> str | None:
        plain = (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
        if plain.is_link_local or plain == _METADATA:
            return "its address is link-local, where clouds serve their metadata"
        if plain.is_multicast or plain.is_unspecified:
            return "it is no host"
        return None
