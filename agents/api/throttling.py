"""Too many requests: of a person, with one token, or with tokens that are none.

Good tokens are never refused because of bad ones: behind a proxy everybody has one address, and
whoever sends nonsense would lock out everybody. A token has 256 random bits, which nobody guesses
at any rate.
"""

from __future__ import annotations

from rest_framework.exceptions import Throttled
from rest_framework.request import Request

from agents.conf import vel_settings
from agents.models import ApiToken
from agents.services.request_rates import network_of, wait_for


class TooManyRequests(Throttled):
    """429 with `Retry-After`. `wait` is in seconds."""

    extra_detail_singular = extra_detail_plural = ""

    def __init__(self, what: str, wait: int) -> None:
        super().__init__(detail=f"{what} Wait {wait} s and try again.")
        self.wait = wait


def count_request(request: Request) -> None:
    """One request more of who asks. Raises `TooManyRequests`. Nobody signed in counts nowhere."""
    settings = vel_settings()
    if isinstance(request.auth, ApiToken):
        limit = settings.API_TOKEN_REQUESTS
        if wait := wait_for(f"token:{request.auth.pk}", limit):
            raise TooManyRequests(f"A token may send {limit} requests a minute.", wait)
    # A project may have None for whom nobody knows.
    if request.user is not None and request.user.is_authenticated:
        limit = settings.API_USER_REQUESTS
        if wait := wait_for(f"user:{request.user.pk}", limit):
            raise TooManyRequests(f"A person may send {limit} requests a minute.", wait)


def count_failure(request: Request) -> None:
    """One more token that is none. Raises `TooManyRequests` in place of the 401."""
    limit = vel_settings().API_FAILED_SIGN_INS
    if wait := wait_for(f"address:{network_of(request.META)}", limit):
        raise TooManyRequests("Too many tokens from this address were none.", wait)
