"""Names and addresses of this machine, without look-ups."""

from __future__ import annotations

from ipaddress import ip_address

_LOCAL = "this machine"


def is_local(host: str) -> bool:
    """Return whether a name or address means this machine, without a look-up."""
    return host == "localhost" or _LOCAL in canonical(host)


def canonical(address: str) -> set[str]:
    """Return addresses in one form, the same for all of this machine; empty for a name."""
    try:
        found = ip_address(address)
    except ValueError:
        return set()
    found = getattr(found, "ipv4_mapped", None) or found
    return {_LOCAL if found.is_loopback or found.is_unspecified else str(found)}
