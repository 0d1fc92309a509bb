"""Ask the kernel through rtnetlink for its route to an address.

This is better than a list of the interfaces' addresses: it is never out of date, and it knows
whole networks that are routed to this host itself.
"""

from __future__ import annotations

import os
import socket
import struct
from enum import IntEnum
from ipaddress import IPv4Address

from sandbox.linux.egress.hosts import Address

_GET_ROUTE, _NEW_ROUTE, _ERROR, _REQUEST, _DESTINATION = 26, 24, 2, 1, 1
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ROUTE = struct.Struct("=BBBBBBBBI")  # family, bits, …, type (the eighth), flags
_SECONDS = 5.0


class RouteType(IntEnum):
    UNICAST = 1
    LOCAL = 2


def route_type(address: Address) -> int:
    """The kernel's RTN_ number for `address`. Raises OSError if there is no route."""
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
