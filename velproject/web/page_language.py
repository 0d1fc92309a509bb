"""Middleware that translates pages. All other responses stay English.

Programs compare the texts of the REST API, MCP and webhooks, and Vel stores texts in the database.
Therefore, a language is active only while a page handles its request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.cache import patch_vary_headers
from django.utils.decorators import sync_and_async_middleware
from django.utils.translation import get_language_from_request, override

PAGES = ("web", "admin")
"""The namespaces of pages."""
PAGES_WITHOUT_NAMESPACE = ("admin/", "login/", "logout/")
"""The starts of the routes of other pages."""


class PageRequest(HttpRequest):
    """A request with the attribute that Django's LocaleMiddleware also sets."""

    LANGUAGE_CODE: str


@sync_and_async_middleware
def page_language(get_response: Callable[[HttpRequest], Any]) -> Callable[[PageRequest], Any]:
    """Use the language of the person's cookie or browser for a page, and English otherwise.

    Place it before CommonMiddleware.
    """
    if iscoroutinefunction(get_response):

        async def answer_async(request: PageRequest) -> HttpResponseBase:
            with override(_language_for(request)):
                return _marked(request, await get_response(request))

        return answer_async

    def answer(request: PageRequest) -> HttpResponseBase:
        with override(_language_for(request)):
            return _marked(request, get_response(request))

    return answer


def _language_for(request: PageRequest) -> str:
    language = get_language_from_request(request)
    if language != settings.LANGUAGE_CODE and not _is_page(request, _match(request)):
        language = settings.LANGUAGE_CODE
    request.LANGUAGE_CODE = language
    return language


def _match(request: HttpRequest) -> ResolverMatch | None:
    try:
        return resolve(request.path_info)
    except Resolver404:
        return None


def _is_page(request: HttpRequest, match: ResolverMatch | None) -> bool:
    if match is None:  # the page for an unknown address, or an error of the API
        return not request.path_info.startswith("/api/")
    if match.namespaces:
        return match.namespaces[0] in PAGES
    return match.route.startswith(PAGES_WITHOUT_NAMESPACE)


def _marked(request: PageRequest, response: HttpResponseBase) -> HttpResponseBase:
    if _is_page(request, request.resolver_match):
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        response.headers.setdefault("Content-Language", request.LANGUAGE_CODE)
    return response
