"""The language of the pages: the person's choice, and the texts of scripts in that language."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
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


@public_page
@require_safe
def texts(request: HttpRequest) -> HttpResponseBase:
    """Return the script with the translations of the request's language."""
    return TextCatalog.as_view()(request)


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
