"""The address of a client, also behind the operator's proxies.

Each proxy appends the address of its client to `X-Forwarded-For`. Entries to the left of those of
the operator's proxies are not trustworthy.
"""

from __future__ import annotations

import ipaddress

from agents.settings import PageSettings


def client_address(peer: str, forwarded: str) -> str:
    """Return the client's address for the connected `peer` and its `X-Forwarded-For` header.

    Returns the peer without proxies (`TRUSTED_PROXIES` is 0), and if the header has too few entries
    or an invalid address.
    """
    proxies = PageSettings.now().TRUSTED_PROXIES
    hops = [hop.strip() for hop in forwarded.split(",")] if proxies > 0 else []
    if not proxies or len(hops) < proxies:
        return peer
    return _address(hops[-proxies]) or peer


def _address(hop: str) -> str:
    """Parse `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`. Else return ""."""
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    try:
        return str(ipaddress.ip_address(hop))
    except ValueError:
        return ""
