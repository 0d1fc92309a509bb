"""Decorators for pages: access control and response headers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

from agents.doors.web.page_policy import CONTENT_SECURITY_POLICY

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


class PersonRequest(HttpRequest):
    """A request of a signed-in user."""

    user: User


def public_page(view: View[P]) -> View[P]:
    """Decorate a page: allow only the site's scripts and styles, and disable caches."""

    @transaction.non_atomic_requests
    @never_cache
    @wraps(view)
    def strict(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response

    return strict


def page(view: Callable[Concatenate[PersonRequest, P], HttpResponseBase]) -> View[P]:
    """Decorate a page for signed-in users. Redirects other users to the login page."""
    return public_page(login_required(cast(View[P], view)))


def wants_json(request: HttpRequest) -> bool:
    """Return whether a script of the page sent the request, and expects JSON instead of a page."""
    return request.headers.get("accept", "").startswith("application/json")
