"""Where a webhook may go: https to public addresses, and what the operator lists.

The check of addresses is the one of the sandboxes' network. Whoever may save a target must not be
able to reach services of this host or its network through it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from agents.conf import vel_settings
from agents.services.errors import InvalidRequest
from agents.services.private_hosts import PrivateHosts
from sandbox.egress.addresses import special_purpose
from sandbox.egress.destinations import Destinations, PublicInternet
from sandbox.egress.hosts import Address, Endpoint, HostRefused, parse_endpoint, parse_port

LONGEST_URL = 500

_URL = re.compile(r"(https?)://([^/?#\\]+)([/?][!-~]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]+))?")
_PORTS = {"https": 443, "http": 80}
_IF_PRIVATE = (
    "If it is a receiver on your own network, the operator lists its host or host:port in "
    "VEL_WEBHOOK_PRIVATE_HOSTS."
)


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """A URL in its parts. `world` resolves its name and says which addresses are allowed."""

    endpoint: Endpoint
    tls: bool
    authority: str
    path: str
    world: Destinations


def parse_webhook_url(url: str) -> WebhookAddress:
    """Raises `InvalidRequest` for what has two readings and for what is known to be refused.

    A name is not resolved here: where it leads is checked at each delivery.
    """
    match = _URL.fullmatch(url)
    if match is None or "#" in url or len(url) > LONGEST_URL:
        raise InvalidRequest(
            "Write the URL of the webhook as https://host/path, of at most "
            f"{LONGEST_URL} printable ASCII characters, without a fragment."
        )
    scheme, authority, path = match[1].lower(), match[2].lower(), match[3] or "/"
    path = path if path.startswith("/") else f"/{path}"
    private = _listed(authority, _PORTS[scheme])
    if private is not None:
        return WebhookAddress(private, scheme == "https", authority, path, PrivateHosts())
    try:
        endpoint = parse_endpoint(authority, _PORTS[scheme])
    except HostRefused as refused:
        raise InvalidRequest(f"This URL is refused: it has {refused}. {_IF_PRIVATE}") from None
    kind = special_purpose(endpoint.address) if endpoint.address else None
    if kind is not None:
        raise InvalidRequest(
            f"This URL is refused: its address is not public ({kind}). {_IF_PRIVATE}"
        )
    if scheme != "https":
        raise InvalidRequest(f"Webhooks go out over https:// only. {_IF_PRIVATE}")
    return WebhookAddress(endpoint, True, authority, path, PublicInternet())


def _listed(authority: str, default_port: int) -> Endpoint | None:
    """The endpoint, if `WEBHOOK_PRIVATE_HOSTS` lists this host or host and port."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None
    host = match[1]
    try:
        port = parse_port(match[2]) if match[2] else default_port
    except HostRefused:
        return None
    listed = {entry.lower() for entry in vel_settings().WEBHOOK_PRIVATE_HOSTS}
    if host not in listed and f"{host}:{port}" not in listed:
        return None
    bare = host.strip("[]")
    return Endpoint(bare, port, _address(bare))


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
