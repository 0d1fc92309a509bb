"""The caller: a person, identified by an API token. Cookies do not count at this door."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from channels.db import database_sync_to_async
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection
from django.views.decorators.debug import sensitive_variables

from agents.models import ApiToken, TokenScope
from agents.services.errors import NotAllowed
from agents.services.request_limits import TooManyRequests, count_bad_token, count_request
from agents.services.tokens import HEADER, authenticate_token, secret_in

Given = ParamSpec("Given")
Found = TypeVar("Found")

HOW_TO_SIGN_IN = f"Send a token: {HEADER}. `vel token create USER --scope mcp` makes one."


@dataclass(frozen=True, slots=True)
class Caller:
    """A valid token and its user. `session` is the client's session id, or empty."""

    user: AbstractBaseUser
    token: ApiToken
    secret: str = field(repr=False)
    session: str = ""

    @property
    def may_read(self) -> bool:
        return bool({TokenScope.MCP, TokenScope.READ} & set(self.token.scopes))

    @property
    def may_cancel(self) -> bool:
        return bool({TokenScope.MCP, TokenScope.RUN} & set(self.token.scopes))

    @property
    def may_call(self) -> bool:
        """Return whether the token may call agents: a call starts a run and reads its answer."""
        return self.may_cancel and self.may_read


class Refused(Exception):
    """A request that is not admitted. `wait` is in seconds, for status 429."""

    def __init__(self, status: int, message: str, *, wait: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.wait = wait


@sensitive_variables()
def caller_of(meta: dict[str, Any], session: str) -> Caller:
    """Return the caller by the request's headers, and count the request. Raises `Refused`.

    The rate limits are those of the REST API: both count for the same person and token.
    """
    secret = secret_in(str(meta.get("HTTP_AUTHORIZATION", "")))
    if not secret:
        raise Refused(401, HOW_TO_SIGN_IN)
    token = authenticate_token(secret) if secret.isascii() else None
    try:
        if token is None:
            count_bad_token(meta)
            raise Refused(401, "The token is unknown, expired or revoked: make a new one.")
        count_request(token.user.pk, token.pk)
    except TooManyRequests as refused:
        raise Refused(429, refused.message, wait=refused.wait) from None
    caller = Caller(token.user, token, secret, session)
    if not (caller.may_read or caller.may_cancel):
        raise Refused(
            403,
            "This needs a token with the scope 'mcp', or with 'read' and 'run'. This token has "
            f"{', '.join(token.scopes)}. Create another in your profile.",
        )
    return caller


@sensitive_variables()
def check_still_good(caller: Caller) -> None:
    """Raise `NotAllowed` if the token is invalid now, has other scopes, or its user is inactive."""
    token = authenticate_token(caller.secret)
    if token is None or set(token.scopes) != set(caller.token.scopes):
        raise NotAllowed("The token has expired or was revoked. Create a new one.")


async def in_database(
    function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs
) -> Found:
    """Call `function` on a thread that may use the database, and release its connection."""
    work = partial(_done_with_connection, partial(function, *args, **kwargs))
    found: Found = await database_sync_to_async(work)()
    return found


async def in_database_to_the_end(function: Callable[[], Found]) -> Found:
    """Call `function` on a separate thread.

    It is completed even if the client disconnects.
    """
    work = partial(_done_with_connection, function)
    found: Found = await database_sync_to_async(work, thread_sensitive=False)()
    return found


def _done_with_connection(function: Callable[[], Found]) -> Found:
    try:
        return function()
    finally:
        if not connection.in_atomic_block:
            connection.close()
