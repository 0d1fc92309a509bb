"""Which names and addresses mean this machine. Nothing is looked up."""

from __future__ import annotations

from ipaddress import ip_address

_LOCAL = "this machine"


def is_local(host: str) -> bool:
    """Whether it means this machine without being looked up."""
    return host == "localhost" or _LOCAL in canonical(host)


def canonical(address: str) -> set[str]:
    """The address in one form, the same for all that lead to this machine; empty for a name."""
    try:
        found = ip_address(address)
    except ValueError:
        return set()
    found = getattr(found, "ipv4_mapped", None) or found
    return {_LOCAL if found.is_loopback or found.is_unspecified else str(found)}
