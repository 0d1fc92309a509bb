"""The language of the pages: the person's choice, and the texts of scripts in that language."""

from __future__ import annotations

import hashlib
from functools import cache

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import add_never_cache_headers, patch_cache_control
from django.utils.translation import get_language, override
from django.views.decorators.http import require_POST, require_safe
from django.views.i18n import JavaScriptCatalog, set_language

from agents.doors.web.pages import public_page


class TextCatalog(JavaScriptCatalog):
    """The texts of Vel's own scripts, from LOCALE_PATHS, without those of Django's admin."""

    packages = ["agents"]


def chosen_language(request: HttpRequest) -> str:
    """Return the language that the person chose, or "" (the language of the browser)."""
    chosen = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    return chosen if chosen in dict(settings.LANGUAGES) else ""


@cache
def text_script(language: str) -> tuple[bytes, str]:
    """Return the script with the translations of a language, and the hash of its content."""
    with override(language):
        content: bytes = TextCatalog().get(HttpRequest()).content
    return content, hashlib.sha256(content).hexdigest()[:16]


@transaction.non_atomic_requests
@require_safe
def texts(request: HttpRequest) -> HttpResponseBase:
    """Return the script with the translations of the request's language.

    Browsers keep it if `v` is its hash. Another process can have other translations during an
    upgrade: a page of that process names another hash.
    """
    content, version = text_script(get_language() or settings.LANGUAGE_CODE)
    response = HttpResponse(content, content_type='text/javascript; charset="utf-8"')
    if request.GET.get("v") == version:
        patch_cache_control(response, private=True, max_age=31_536_000, immutable=True)
    else:
        add_never_cache_headers(response)
    return response


@public_page
@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Store `language` in a cookie and redirect to `next`. Empty: use the browser's language."""
    response = set_language(request)
    if not request.POST.get("language"):
        response.delete_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            path=settings.LANGUAGE_COOKIE_PATH,
            domain=settings.LANGUAGE_COOKIE_DOMAIN,
            samesite="Lax",
        )
    return response
