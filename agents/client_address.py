"""Who connects, also through proxies of the operator's own.

Each proxy appends to `X-Forwarded-For` whom it was connected by. What stands there further to the
left than the operator's own proxies have written, anybody may have sent.
"""

from __future__ import annotations

import ipaddress

from agents.settings import PageSettings


def client_address(peer: str, forwarded: str) -> str:
    """The address of the client, where `peer` has connected and `forwarded` is its header.

    That of the peer without proxies (`TRUSTED_PROXIES` 0), and for a header that these have not
    written: one with fewer addresses, or with what is none.
    """
    proxies = PageSettings.now().TRUSTED_PROXIES
    hops = [hop.strip() for hop in forwarded.split(",")] if proxies > 0 else []
    if not proxies or len(hops) < proxies:
        return peer
    return _address(hops[-proxies]) or peer


def _address(hop: str) -> str:
    """`192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`; else empty."""
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    try:
        return str(ipaddress.ip_address(hop))
    except ValueError:
        return ""
