"""Signing in and out, and the limits of guessing passwords."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from agents.doors.web.pages import public_page
from agents.services.request_rates import network_of, wait_for
from agents.settings import LimitSettings

View = Callable[..., HttpResponseBase]
Limits = Callable[[HttpRequest], Iterator[tuple[str, int]]]
"""The subjects to count for a request, each with its number of requests a minute."""

_COUNTED_CHARACTERS = 1_000
"""Of a user name. No name is longer, and the normal form of a long text can take hours."""


def limited_sign_in(view: View) -> View:
    """Limit how often a page for signing in can be used.

    One address can try one name, and all names together, only so often a minute. From another
    address the owner of the name can still sign in.
    """
    return _limited(view, _sign_in_limits)


def limited_password_change(view: View) -> View:
    """Limit how often a page that asks for one's own password can be used.

    Without it, somebody with a stolen session could guess the password there.
    """
    return _limited(view, _password_limits)


def _limited(view: View, limits: Limits) -> View:
    @wraps(view)
    def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Before the password is checked, which takes half a second of CPU time.
        if request.method == "POST":
            for subject, per_minute in limits(request):
                if wait := wait_for(subject, per_minute):
                    answer = render(request, "web/login_wait.html", {"wait": wait}, status=429)
                    answer.headers["Retry-After"] = str(wait)
                    return answer
        return view(request, *args, **kwargs)

    return limited


def _sign_in_limits(request: HttpRequest) -> Iterator[tuple[str, int]]:
    settings, network = LimitSettings.now(), network_of(request.META)
    tried = f"{network} {_counted_name(request.POST.get('username', ''))}"
    digest = hashlib.sha256(tried.encode(errors="replace")).hexdigest()[:40]
    yield f"login:{digest}", settings.SIGN_INS
    yield f"logins:{network}", settings.ADDRESS_SIGN_INS


def _password_limits(request: HttpRequest) -> Iterator[tuple[str, int]]:
    if request.user.is_authenticated:
        yield f"password:{request.user.pk}", LimitSettings.now().SIGN_INS


def _counted_name(name: str) -> str:
    """Return the same text for all spellings of a user name that Django takes for the same."""
    shortened = name.strip()[:_COUNTED_CHARACTERS]
    normalised = get_user_model().normalize_username(shortened)
    return unicodedata.normalize("NFKC", normalised.casefold()).strip()


login = public_page(
    limited_sign_in(
        LoginView.as_view(template_name="web/login.html", redirect_authenticated_user=True)
    )
)
logout = public_page(LogoutView.as_view())
"""By POST only, so that no foreign page can sign a person out by an image."""
