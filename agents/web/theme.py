"""Light, dark, or as the system has it: a cookie, so that a page comes in the right colours."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from agents.doors.web.pages import public_page

COOKIE = "vel_theme"
THEMES = ("light", "dark")
YEAR = 365 * 24 * 3600


def theme_of(request: HttpRequest) -> str:
    """light, dark, or empty: as the system has it."""
    chosen = request.COOKIES.get(COOKIE, "")
    return chosen if chosen in THEMES else ""


@public_page
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep `theme` and go back to the page that asked; else it is the system's."""
    back = request.POST.get("back", "")
    safe = url_has_allowed_host_and_scheme(
        back, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    response = redirect(back if safe else "web:home")
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        response.set_cookie(
            COOKIE, chosen, max_age=YEAR, samesite="Lax", secure=request.is_secure(), httponly=True
        )
    else:
        response.delete_cookie(COOKIE, samesite="Lax")
    return response
