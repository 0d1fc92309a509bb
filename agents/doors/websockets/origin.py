"""Access to sockets by origin: pages of the site, and programs with a token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from agents.doors.trusted_origins import is_trusted_origin
from agents.services.tokens import secret_in

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class OwnPagesOnly:
    """ASGI middleware that refuses the handshake (403) of foreign pages.

    A browser sends a person's session cookie with WebSockets of any page, and the page's address in
    Origin. The origin must be the requested host or one of CSRF_TRUSTED_ORIGINS. The host must be
    one of ALLOWED_HOSTS, because an attacker's DNS can give this machine any name. Programs send no
    Origin: they need a token.
    """

    # Marks an application that routes within a path, so that a project can mount it below a path.
    _path_routing = True

    def __init__(self, app: AsgiApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_allowed(scope["headers"]):
            await self.app(scope, receive, send)
        else:
            await send({"type": "websocket.close"})


def is_allowed(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a handshake with these headers comes from this site or has a token."""
    given = {name.lower(): value.decode("latin-1") for name, value in headers}
    host = given.get(b"host", "")
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, _allowed_hosts()):
        return False
    origin = given.get(b"origin")
    if origin is None:
        return secret_in(given.get(b"authorization", "")) is not None
    if is_trusted_origin(origin):
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    # A site with TLS serves no pages over HTTP: an attacker on the network has made them.
    schemes = ("https",) if settings.SESSION_COOKIE_SECURE else ("http", "https")
    return parts.scheme in schemes and parts.netloc.lower() == host.lower()


def _allowed_hosts() -> list[str]:
    if settings.DEBUG and not settings.ALLOWED_HOSTS:
        return [".localhost", "127.0.0.1", "[::1]"]
    return list(settings.ALLOWED_HOSTS)
