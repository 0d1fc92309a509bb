"""Limits of requests: by person, by token, and by address for invalid tokens.

The REST API, the sockets and the MCP server count together. Invalid tokens never block valid ones:
behind a proxy all clients have one address, and one client with invalid tokens would lock out all
others. A token has 256 random bits, which cannot be guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.services.errors import ServiceError
from agents.services.request_rates import network_of, wait_for
from agents.settings import LimitSettings


class TooManyRequests(ServiceError):
    """A person, a token or an address sent too many requests. `wait` is in seconds."""

    code = "throttled"
    http_status = 429

    def __init__(self, message: str, wait: int) -> None:
        super().__init__(f"{message} Wait {wait} s and try again.")
        self.wait = wait


def count_request(user_id: Any, token_id: Any = None) -> None:
    """Count one request of a person, by a token if there is one. Raises `TooManyRequests`."""
    settings = LimitSettings.now()
    if token_id is not None:
        limit = settings.API_TOKEN_REQUESTS
        if wait := wait_for(f"token:{token_id}", limit):
            raise TooManyRequests(f"A token may send {limit} requests a minute.", wait)
    limit = settings.API_USER_REQUESTS
    if wait := wait_for(f"user:{user_id}", limit):
        raise TooManyRequests(f"A person may send {limit} requests a minute.", wait)


def count_bad_token(meta: Mapping[str, Any]) -> None:
    """Count an invalid token from the address in `meta`, in the form of Django's `request.META`.

    Raises `TooManyRequests`, for the response instead of 401.
    """
    limit = LimitSettings.now().API_FAILED_SIGN_INS
    if wait := wait_for(f"address:{network_of(meta)}", limit):
        raise TooManyRequests("Too many invalid tokens from this address.", wait)
