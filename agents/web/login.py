"""Sign-in and sign-out pages, with limits against password guessing."""

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
"""Returns the counted subjects of a request, each with its limit per minute."""

_COUNTED_CHARACTERS = 1_000
"""Characters of a user name. No name is longer, and normalizing a very long text can take hours."""


def limited_sign_in(view: View) -> View:
    """Decorate a sign-in page: limit the rate of attempts.

    Each address has a limit per minute for one name and one for all names together. The owner of
    the name can still sign in from another address.
    """
    return _limited(view, _sign_in_limits)


def limited_password_change(view: View) -> View:
    """Decorate a page that asks for the user's current password: limit its use.

    Without the limit, somebody with a stolen session could guess the password there.
    """
    return _limited(view, _password_limits)


def _limited(view: View, limits: Limits) -> View:
    @wraps(view)
    def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Before the password check, which takes half a second of CPU time.
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
    """Return the same text for all spellings of a user name that Django treats as equal."""
    shortened = name.strip()[:_COUNTED_CHARACTERS]
    normalised = get_user_model().normalize_username(shortened)
    return unicodedata.normalize("NFKC", normalised.casefold()).strip()


login = public_page(
    limited_sign_in(
        LoginView.as_view(template_name="web/login.html", redirect_authenticated_user=True)
    )
)
logout = public_page(LogoutView.as_view())
"""POST only, so that an image on a foreign page cannot sign a user out."""
