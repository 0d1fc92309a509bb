"""The public addresses, as an explicit list because `ipaddress` differs between Python versions.

Source: the IANA special-purpose registries. All addresses outside global unicast are refused.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from sandbox.linux.egress.hosts import Address

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
    """The kind of a non-public address; None for a public address."""
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
