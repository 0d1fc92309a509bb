"""The base class of all views of the API. It ignores the project's REST framework settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    NotAuthenticated,
    Throttled,
)
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.views import APIView

from agents.doors.rest import converters  # noqa: F401  # registers them for URL patterns
from agents.doors.rest.authentication import TokenAuthentication
from agents.doors.rest.problems import exception_handler
from agents.doors.rest.wire import CanonicalJSONRenderer, OneRepresentation, StrictJSONParser
from agents.models import ApiToken, TokenScope
from agents.services import request_limits
from agents.services.errors import NotAllowed, NotFound

SESSION_ONLY = "session"
"""In a view's `scopes`: only a session may use the method, for example to create tokens."""


class HasScope(BasePermission):
    """Requires a token to have the scope for the method in the view's `scopes`.

    Methods without an entry are closed to tokens.
    """

    code = "insufficient_scope"

    def has_permission(self, request: Request, view: APIView) -> bool:
        method = str(request.method)
        if request.auth is None or method not in view.allowed_methods:
            return True  # a session, or a method that gets a 405
        needed = getattr(view, "scopes", {}).get("GET" if method == "HEAD" else method)
        if needed == SESSION_ONLY:
            self.message = "Tokens cannot do this. Sign in, and use the session."
            return False
        has = request.auth.scopes if isinstance(request.auth, ApiToken) else []
        self.message = (
            f"This needs a token with the scope '{needed}'; "
            f"this one has {', '.join(has) or 'none'}: make another in your profile."
        )
        return needed in has


def require_scope(request: Request, scope: TokenScope, *, beside: TokenScope) -> None:
    """Raise `NotAllowed` for a token without `scope`, an additional scope that the request needs.

    `beside` is the scope that the method always needs, for the message.
    """
    if isinstance(request.auth, ApiToken) and scope not in request.auth.scopes:
        raise NotAllowed(
            f"This requires a token with both scopes {beside.value!r} and {scope.value!r}.",
            code="insufficient_scope",
        )


class ApiView(APIView):
    """A view with JSON bodies and responses, problem documents, token scopes and CSRF checks."""

    authentication_classes: Sequence[type[BaseAuthentication]] = (
        TokenAuthentication,
        SessionAuthentication,
    )
    permission_classes: Sequence[type[BasePermission]] = (IsAuthenticated, HasScope)
    parser_classes = (StrictJSONParser,)
    renderer_classes = (CanonicalJSONRenderer,)
    content_negotiation_class = OneRepresentation
    throttle_classes = ()
    versioning_class = None
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    scopes: ClassVar[dict[str, str]] = {}
    """The scope that a token needs for each method of the view."""

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        # Even with ATOMIC_REQUESTS: refused requests are counted, and services start their own
        # transactions.
        return transaction.non_atomic_requests(super().as_view(**initkwargs))

    def get_exception_handler(self) -> Callable[..., Any]:
        return exception_handler

    def perform_authentication(self, request: Request) -> None:
        # Before the permission checks: refused requests also use resources.
        try:
            super().perform_authentication(request)
        except AuthenticationFailed:
            count_failure(request)
            raise
        count_request(request)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # Without a length, REST framework would read an empty body, and the size limit would not
        # apply.
        if "Transfer-Encoding" in request.headers:
            raise LengthRequired()

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {**super().default_response_headers, "Cache-Control": "no-store"}


class LengthRequired(APIException):
    """Error for a chunked body."""

    status_code = 411
    default_code = "length_required"
    default_detail = "Send the body with a Content-Length, not in chunks."


class UnknownUrl(ApiView):
    """Any other path below the API's prefix. Returns 404 for all methods."""

    schema = None
    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(
            "Unknown endpoint. Paths have no final slash. See docs/reference/rest-api.md."
        )


def person(request: Request) -> AbstractBaseUser:
    """Return the authenticated user. `IsAuthenticated` has refused all others."""
    if not isinstance(request.user, AbstractBaseUser):
        raise NotAuthenticated()
    return request.user


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
