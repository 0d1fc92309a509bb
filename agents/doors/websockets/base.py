"""The base class of WebSocket consumers: it admits people, limits sockets and refuses others."""

from __future__ import annotations

from typing import Any

from autobahn.exception import Disconnected
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from agents.doors.websockets.credentials import Credentials, credentials_of
from agents.doors.websockets.frames import refused
from agents.models import TokenScope
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed
from agents.services.open_connections import NoRoom, Place, TooManyConnections, take_place
from agents.services.request_limits import TooManyRequests, count_bad_token, count_request

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
