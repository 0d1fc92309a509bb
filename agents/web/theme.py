"""The color theme: light, dark or the system's. A cookie has it, so that pages load with it."""

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
    """Return light, dark or "" (the theme of the system)."""
    chosen = request.COOKIES.get(COOKIE, "")
    return chosen if chosen in THEMES else ""


@public_page
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Store `theme` and redirect back. Any other value selects the theme of the system."""
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
