"""URLs that Vel itself calls for people: https to public addresses, and hosts that operators list.

The check of addresses is the same as in the sandboxes' network. A person with the right to store a
URL must not reach services of this host or its network through it.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from agents.services.errors import InvalidRequest
from sandbox.linux.egress.dialling import Destinations, PublicInternet, special_purpose
from sandbox.linux.egress.hosts import Address, Endpoint, HostRefused, parse_endpoint, parse_port

LONGEST_URL = 500

_URL = re.compile(r"(https?)://([^/?#\\]+)([/?][!-~]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]+))?")
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of error messages about one kind of address."""

    what: str
    """The thing, such as "the webhook"."""
    subject: str
    """Such as "Webhooks go": the start of a sentence that ends with "out over https:// only"."""
    kind: str
    """An address on a private network, such as "a receiver"."""
    setting: str
    """The variable that lists permitted private hosts."""

    @property
    def if_private(self) -> str:
        return (
            f"If it is {self.kind} on your own network, the operator lists its host or host:port "
            f"in {self.setting}."
        )


@dataclass(frozen=True, slots=True)
class OutsideAddress:
    """A URL in parts. `world` resolves its name and checks addresses."""

    endpoint: Endpoint
    tls: bool
    authority: str
    path: str
    world: Destinations


def parse_outside_url(url: str, private_hosts: Collection[str], words: Wording) -> OutsideAddress:
    """Parse `url`. `private_hosts` are those of the setting that `words` names.

    A name is not resolved here: its addresses are checked at each connection. Raises
    `InvalidRequest` for an ambiguous URL, and for one that is certain to be refused.
    """
    match = _URL.fullmatch(url)
    if match is None or "#" in url or len(url) > LONGEST_URL:
        raise InvalidRequest(
            f"Write the URL of {words.what} as https://host/path, of at most "
            f"{LONGEST_URL} printable ASCII characters, without a fragment."
        )
    scheme, authority, path = match[1].lower(), match[2].lower(), match[3] or "/"
    path = path if path.startswith("/") else f"/{path}"
    private = _listed(authority, _PORTS[scheme], private_hosts)
    if private is not None:
        return OutsideAddress(private, scheme == "https", authority, path, PrivateHosts())
    try:
        endpoint = parse_endpoint(authority, _PORTS[scheme])
    except HostRefused as refused:
        raise InvalidRequest(f"This URL is refused: it has {refused}. {words.if_private}") from None
    kind = special_purpose(endpoint.address) if endpoint.address else None
    if kind is not None:
        raise InvalidRequest(
            f"This URL is refused: its address is not public ({kind}). {words.if_private}"
        )
    if scheme != "https":
        raise InvalidRequest(f"{words.subject} out over https:// only. {words.if_private}")
    return OutsideAddress(endpoint, True, authority, path, PublicInternet())


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return a context that verifies names and certificates. SSL_CERT_FILE adds an authority."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _listed(authority: str, default_port: int, hosts: Collection[str]) -> Endpoint | None:
    """Return the endpoint, if `hosts` contains this host, or host and port."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None
    host = match[1]
    try:
        port = parse_port(match[2]) if match[2] else default_port
    except HostRefused:
        return None
    listed = {entry.lower() for entry in hosts}
    if host not in listed and f"{host}:{port}" not in listed:
        return None
    bare = host.strip("[]")
    return Endpoint(bare, port, _address(bare))


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


_METADATA = IPv4Address("168.63.129.16")


class PrivateHosts:
    """The hosts that operators list, with the addresses to which this host resolves their names.

    Link-local addresses are refused: clouds serve credentials at one, and the addresses of a name
    can change after it was listed. So are addresses that no host has, such as multicast.
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
