"""The base class of all views of the API. It ignores the project's REST framework settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.views import APIView

from agents.doors.rest import converters  # noqa: F401  # registers them for URL patterns
from agents.doors.rest.authentication import TokenAuthentication
from agents.doors.rest.permissions import HasScope
from agents.doors.rest.problems import exception_handler
from agents.doors.rest.throttling import count_failure, count_request
from agents.doors.rest.wire import CanonicalJSONRenderer, OneRepresentation, StrictJSONParser
from agents.services.errors import NotFound


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
        raise NotFound("There is no such endpoint: see docs/api.md; paths end without a slash.")


def person(request: Request) -> AbstractBaseUser:
    """Return the authenticated user. `IsAuthenticated` has refused all others."""
    if not isinstance(request.user, AbstractBaseUser):
        raise NotAuthenticated()
    return request.user
