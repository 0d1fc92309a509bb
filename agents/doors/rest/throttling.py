"""The limits of `agents.services.request_limits` as responses of the REST API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rest_framework.exceptions import Throttled
from rest_framework.request import Request

from agents.models import ApiToken
from agents.services import request_limits


class TooManyRequests(Throttled):
    """Error 429 with `Retry-After`. `wait` is in seconds."""

    extra_detail_singular = extra_detail_plural = ""

    def __init__(self, what: str, wait: int) -> None:
        super().__init__(detail=what)
        self.wait = wait


def count_request(request: Request) -> None:
    """Count a request of the authenticated user. Raises `TooManyRequests`.

    Requests of anonymous users are not counted.
    """
    token_id = request.auth.pk if isinstance(request.auth, ApiToken) else None
    # A project may have None for anonymous users.
    if request.user is not None and request.user.is_authenticated:
        with _as_throttled():
            request_limits.count_request(request.user.pk, token_id)


def count_failure(request: Request) -> None:
    """Count an invalid token. Raises `TooManyRequests` instead of the 401."""
    with _as_throttled():
        request_limits.count_bad_token(request.META)


@contextmanager
def _as_throttled() -> Iterator[None]:
    try:
        yield
    except request_limits.TooManyRequests as refused:
        raise TooManyRequests(refused.message, refused.wait) from None
