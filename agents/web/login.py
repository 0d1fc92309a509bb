"""Signing in and out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from agents.conf import vel_settings
from agents.services.request_rates import network_of, wait_for
from agents.web.pages import public_page

View = Callable[..., HttpResponseBase]


def limited_sign_in(view: View) -> View:
    """A name is tried so often a minute from one address; elsewhere its owner still gets in.

    For every page that takes a password, the admin's too.
    """

    @wraps(view)
    def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Before the password is looked at, which takes half a second of a processor.
        if request.method == "POST" and (wait := _wait(request)):
            answer = render(request, "web/login_wait.html", {"wait": wait}, status=429)
            answer.headers["Retry-After"] = str(wait)
            return answer
        return view(request, *args, **kwargs)

    return limited


def _wait(request: HttpRequest) -> int:
    name = request.POST.get("username", "").strip().casefold()
    tried = f"{network_of(request.META)} {name}"
    subject = f"login:{hashlib.sha256(tried.encode(errors='replace')).hexdigest()[:40]}"
    return wait_for(subject, vel_settings().SIGN_INS)


login = public_page(
    limited_sign_in(
        LoginView.as_view(template_name="web/login.html", redirect_authenticated_user=True)
    )
)
logout = public_page(LogoutView.as_view())
"""By POST only, so that no foreign page can sign a person out by an image."""
