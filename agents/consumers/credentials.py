"""Who is at the other end of a socket. Asked again for each frame: a session may end meanwhile."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from channels.auth import get_user
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from agents.models import TokenScope
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed
from agents.services.tokens import authenticate_token


class Credentials(Protocol):
    """What a handshake brought along."""

    name: str
    """What the audit log calls it; empty for a session."""

    async def person(self, scope: TokenScope) -> Person:
        """The user as the database knows them now; AnonymousUser when the right has ended.

        Raises `NotAllowed` for a token without `scope`. A session has all scopes.
        """

    def check_csrf(self, token: str) -> None:
        """Raise `NotAllowed` unless `token` proves that a page of this site sent the frame."""


class SessionCredentials:
    """A browser with a session cookie. Frames that change something need the page's CSRF token."""

    name = ""

    def __init__(self, cookies: dict[str, str]) -> None:
        self._cookies = cookies

    async def person(self, scope: TokenScope) -> Person:
        # A new store each time: a store keeps what it has read.
        store = import_module(settings.SESSION_ENGINE).SessionStore
        key = self._cookies.get(settings.SESSION_COOKIE_NAME)
        user: Person = await get_user({"session": store(key)})
        return user

    def check_csrf(self, token: str) -> None:
        request = HttpRequest()
        request.method = "POST"
        request.COOKIES = self._cookies
        request.META[settings.CSRF_HEADER_NAME] = token
        check = CsrfViewMiddleware(_never_called)
        check.process_request(request)
        if check.process_view(request, _never_called, (), {}) is not None:
            raise NotAllowed("The page is too old to act: reload it.", code="csrf")


class TokenCredentials:
    """A program with `Authorization: Token …`. No page can send that header for somebody else."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.name = f"token {secret[:10]}…"

    async def person(self, scope: TokenScope) -> Person:
        token = await database_sync_to_async(authenticate_token)(self._secret)
        if token is None:
            return AnonymousUser()
        if scope not in token.scopes:
            raise NotAllowed(
                f"This needs a token with the scope {scope.value!r}.", code="insufficient_scope"
            )
        user: Person = token.user
        return user

    def check_csrf(self, token: str) -> None:
        pass


def credentials_of(scope: dict[str, Any]) -> Credentials:
    """Those of a handshake. A token header, even a bad one, never falls back to the session."""
    for name, value in scope["headers"]:
        if name.lower() == b"authorization":
            keyword, _, secret = value.decode("latin-1").partition(" ")
            return TokenCredentials(secret.strip() if keyword.lower() == "token" else "")
    return SessionCredentials(scope["cookies"])


def _never_called(request: HttpRequest) -> HttpResponse:
    raise AssertionError("Only the check of the middleware is used.")
