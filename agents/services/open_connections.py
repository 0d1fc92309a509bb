"""Numbers of lasting connections of persons and tokens in this process.

WebSockets, event streams, downloads and waiting MCP calls are lasting. All other requests end soon,
and the web server reserves a part of its connections for them.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, Literal

from agents.services.errors import ServiceError
from agents.settings import LimitSettings

Kind = Literal["", "stream", "call"]
_Key = tuple[str, Any]

_lock = threading.RLock()  # a place may be collected while another one is taken
_open: Counter[_Key] = Counter()
_most = 0
"""The limit of this process, for all persons together. 0: no limit."""


class TooManyConnections(ServiceError):
    """A person or a token has as many lasting connections as allowed."""

    code = "too_many_connections"
    http_status = 429


class TooManyStreams(TooManyConnections):
    """A person has as many event streams as allowed."""

    code = "too_many_streams"


class NoRoom(ServiceError):
    """All persons together have as many lasting connections as allowed."""

    code = "no_room"
    http_status = 503


class Place:
    """One lasting connection. `release`, or the end of the object, gives it back once."""

    def __init__(self, keys: list[_Key]) -> None:
        self._keys = keys

    def release(self) -> None:
        with _lock:
            keys, self._keys = self._keys, []
            for key in keys:
                _open[key] -= 1
                if not _open[key]:
                    del _open[key]

    def __del__(self) -> None:
        # A client that leaves before the first byte leaves a generator that never started.
        self.release()


def limit_lasting(connections: int) -> None:
    """Let at most three quarters of the `connections` of this process be lasting ones."""
    global _most
    _most = connections * 3 // 4


def take_place(user_id: Any, token_id: Any = None, *, kind: Kind = "") -> Place:
    """Count one more lasting connection of a person, and of a token if there is one.

    Args:
        kind: Event streams ("stream") and waiting MCP calls ("call") have a lower limit, too.

    Raises:
        TooManyStreams: The person has `STREAMS_PER_USER` connections of this `kind`.
        TooManyConnections: The person, or the token, has as many connections as allowed.
        NoRoom: The process has as many lasting connections as allowed.
    """
    settings = LimitSettings.now()
    of_user = settings.CONNECTIONS_PER_USER
    if _most:  # one person gets at most half of them
        of_user = min(of_user or _most, max(1, _most // 2))
    # No name holds an error: an error that its own frame refers to would keep the request alive.
    limits: list[tuple[_Key, int, type[ServiceError], str]] = [
        (
            ("user", user_id),
            of_user,
            TooManyConnections,
            f"A person may have {of_user} open connections: close one.",
        ),
        (
            ("all", None),
            _most,
            NoRoom,
            "The server has no room for more connections: try later.",
        ),
    ]
    if token_id is not None:
        of_token = settings.CONNECTIONS_PER_TOKEN
        message = f"A token may have {of_token} open connections: close one."
        limits.insert(0, (("token", token_id), of_token, TooManyConnections, message))
    if kind:
        message = "You have too many open streams: close one, or wait a moment."
        limits.insert(0, ((kind, user_id), settings.STREAMS_PER_USER, TooManyStreams, message))
    with _lock:
        for key, limit, refusal, message in limits:
            if 0 < limit <= _open[key]:
                raise refusal(message)
        keys = [key for key, *_ in limits]
        _open.update(keys)
    return Place(keys)


def open_now(user_id: Any) -> int:
    """Return how many lasting connections a person has in this process."""
    with _lock:
        return _open[("user", user_id)]
