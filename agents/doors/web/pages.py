"""The decorator of all pages: access, and the policy for browsers."""

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
    """A request of somebody who has signed in."""

    user: User


def public_page(view: View[P]) -> View[P]:
    """A page without scripts or styles but the site's own, kept by no cache."""

    @transaction.non_atomic_requests
    @never_cache
    @wraps(view)
    def strict(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response

    return strict


def page(view: Callable[Concatenate[PersonRequest, P], HttpResponseBase]) -> View[P]:
    """A `public_page` for people who have signed in; others are sent to do so."""
    return public_page(login_required(cast(View[P], view)))
