"""Middleware that records the origin of a request in audit entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from agents.client_address import client_address
from agents.models import ApiToken, Door
from agents.services.audit import Origin, acting


@sync_and_async_middleware
def request_origin(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Record the origin of each request, for audit entries. Place it after
    AuthenticationMiddleware.
    """
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            with acting(partial(_origin, request)):
                response: HttpResponseBase = await get_response(request)
                return response

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        with acting(partial(_origin, request)):
            response: HttpResponseBase = get_response(request)
            return response

    return answer


def _origin(request: HttpRequest) -> Origin:
    match = request.resolver_match
    place = match.app_names[0] if match is not None and match.app_names else ""
    # REST framework also sets the user and the token of a request here.
    token = getattr(request, "auth", None)
    return Origin(
        door={"admin": Door.ADMIN, "api": Door.API, "mcp": Door.MCP}.get(place, Door.WEB),
        address=client_address(
            str(request.META.get("REMOTE_ADDR", "")),
            str(request.META.get("HTTP_X_FORWARDED_FOR", "")),
        ),
        person=getattr(request, "user", None),
        credential=f"token {token.prefix}…" if isinstance(token, ApiToken) else "",
    )
