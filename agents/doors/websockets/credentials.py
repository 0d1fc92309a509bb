"""The credentials of a socket, checked again for each frame: a session can end."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from agents.models import ApiToken, TokenScope
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed
from agents.services.tokens import authenticate_token, token_digest


class Credentials(Protocol):
    """The credentials of a handshake."""

    name: str
    """The name for the audit log; empty for a session."""
    key: str
    """Equal for all sockets with the same session or token."""
    has_token: bool
    token: ApiToken | None
    """The token, after `person_now` has found it."""

    def person_now(self, scope: TokenScope) -> Person:
        """Return the current user, or AnonymousUser if the credentials are no longer valid.

        Raises `NotAllowed` for a token without `scope`. A session has all scopes.
        """

    def check_csrf(self, token: str) -> None:
        """Raise `NotAllowed` unless `token` proves that a page of this site sent the frame."""


async def person_of(credentials: Credentials, scope: TokenScope) -> Person:
    """Call `credentials.person_now` in a thread for the database."""
    person: Person = await database_sync_to_async(credentials.person_now)(scope)
    return person


class SessionCredentials:
    """A browser with a session cookie. Frames that change data need the page's CSRF token."""

    name = ""
    has_token = False

    def __init__(self, cookies: dict[str, str]) -> None:
        self.token: ApiToken | None = None
        self._cookies = cookies
        self._session = cookies.get(settings.SESSION_COOKIE_NAME)
        self.key = f"session {self._session}"

    def person_now(self, scope: TokenScope) -> Person:
        request = HttpRequest()
        # Use a new store each time: a store caches its data.
        request.session = import_module(settings.SESSION_ENGINE).SessionStore(self._session)
        return get_user(request)

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
    """A program with `Authorization: Token …`. Foreign pages cannot send this header."""

    has_token = True

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.name = f"token {secret[:10]}…"
        self.key = f"token {token_digest(secret)}"
        self.token: ApiToken | None = None

    def person_now(self, scope: TokenScope) -> Person:
        token = authenticate_token(self._secret)
        if token is None:
            return AnonymousUser()
        self.token = token
        if scope not in token.scopes:
            raise NotAllowed(
                f"This needs a token with the scope {scope.value!r}.", code="insufficient_scope"
            )
        user: Person = token.user
        return user

    def check_csrf(self, token: str) -> None:
        pass


def credentials_of(scope: dict[str, Any]) -> Credentials:
    """Return the credentials of a handshake. An invalid token does not fall back to the session."""
    for name, value in scope["headers"]:
        if name.lower() == b"authorization":
            keyword, _, secret = value.decode("latin-1").partition(" ")
            return TokenCredentials(secret.strip() if keyword.lower() == "token" else "")
    return SessionCredentials(scope["cookies"])


def _never_called(request: HttpRequest) -> HttpResponse:
    raise AssertionError("Only the check of the middleware is used.")
