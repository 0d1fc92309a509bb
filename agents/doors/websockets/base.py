"""The base class of WebSocket consumers: it admits people, limits sockets and refuses others."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any, Protocol

from autobahn.exception import Disconnected
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from agents.doors.websockets.frames import refused
from agents.models import ApiToken, TokenScope
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed
from agents.services.open_connections import NoRoom, Place, TooManyConnections, take_place
from agents.services.request_limits import TooManyRequests, count_bad_token, count_request
from agents.services.tokens import authenticate_token, secret_in, token_digest


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
            raise NotAllowed("The page is outdated. Reload it and try again.", code="csrf")


class TokenCredentials:
    """A program with `Authorization: Bearer vel_…`. Foreign pages cannot send this header."""

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
            secret = secret_in(value.decode("latin-1"))
            if secret is not None:
                return TokenCredentials(secret)
    return SessionCredentials(scope["cookies"])


def _never_called(request: HttpRequest) -> HttpResponse:
    raise AssertionError("Only the check of the middleware is used.")


# Autobahn, which Daphne uses, sends no code below 3000 except 1000.
BAD_REQUEST = 4400
UNAUTHENTICATED = 4401
FORBIDDEN = 4403
NOT_FOUND = 4404
TOO_MANY = 4429
INTERNAL_ERROR = 4500
NO_ROOM = 4503


class Refused(Exception):
    """The socket is closed with `code`, after an error frame if `word` and `message` are set."""

    def __init__(self, code: int, word: str = "", message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.frame = refused(word, message) if word else ""


class Consumer(AsyncWebsocketConsumer):
    """A consumer with a client that can leave at any time."""

    credentials: Credentials
    _place: Place | None = None
    _following: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        self.credentials = credentials_of(self.scope)
        # A page cannot read the close code if the handshake was not accepted.
        await self.accept()
        try:
            await self.start()
        except Refused as refusal:
            await self.refuse(refusal)

    async def start(self) -> None:
        """Call `admit` and start to send. Raises `Refused`."""
        raise NotImplementedError

    async def disconnect(self, code: int) -> None:
        if self._place is not None:
            self._place.release()
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def admit(self) -> Person:
        """Return the user of the socket, and count the socket. Raises `Refused`."""
        person, self._place = await database_sync_to_async(_admit)(self.credentials, self.meta)
        return person

    async def refuse(self, refusal: Refused) -> None:
        if refusal.frame:
            await self.send(text_data=refusal.frame)
        await self.close(refusal.code)

    @property
    def meta(self) -> dict[str, str]:
        """The addresses of the handshake, as in Django's `request.META`."""
        host, *_ = self.scope.get("client") or ("",)
        headers = self.scope.get("headers", ())
        forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        return {"REMOTE_ADDR": str(host), "HTTP_X_FORWARDED_FOR": forwarded.decode("latin-1")}

    async def send(self, *args: Any, **kwargs: Any) -> None:
        """Send a frame, or nothing if the client has just left: `disconnect` follows."""
        try:
            await super().send(*args, **kwargs)
        except Disconnected:
            pass


def reader_of(credentials: Credentials) -> Person:
    """Return the user who can read with `credentials` now. Raises `Refused`."""
    try:
        person = credentials.person_now(TokenScope.READ)
    except NotAllowed:
        raise Refused(FORBIDDEN) from None
    if not person.is_authenticated:
        raise Refused(UNAUTHENTICATED)
    return person


def _admit(credentials: Credentials, meta: dict[str, str]) -> tuple[Person, Place]:
    try:
        try:
            person = reader_of(credentials)
        except Refused as refusal:
            if refusal.code == UNAUTHENTICATED and credentials.has_token:
                count_bad_token(meta)
            if refusal.code == FORBIDDEN and credentials.token is not None:
                count_request(credentials.token.user_id, credentials.token.pk)
            raise
        token_id = credentials.token.pk if credentials.token is not None else None
        count_request(person.pk, token_id)
        return person, take_place(person.pk, token_id)
    except (TooManyRequests, TooManyConnections) as limit:
        raise Refused(TOO_MANY, limit.code, limit.message) from None
    except NoRoom as limit:
        raise Refused(NO_ROOM, limit.code, limit.message) from None
