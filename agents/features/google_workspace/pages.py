"""Connect Google by consent: the redirect to Google, and the return.

The return is a GET from another site, so it requires the state that this session received recently,
and accepts it once. So an attacker cannot make a person connect another account.
"""

from __future__ import annotations

import hmac
import secrets
import time
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.features.google_workspace.actions import save_google_consent
from agents.features.google_workspace.client.access import SCOPES
from agents.features.google_workspace.client.tokens import can_ask, consent_address
from agents.hidden_text import visible
from agents.services.errors import InvalidRequest, ServiceError
from agents.settings import PageSettings

KEPT = "google_consent"
MAX_AGE = 600
"""Seconds until a person must return."""


def begin_consent(request: PersonRequest) -> str:
    """Return the URL of Google's consent page for the selected permissions.

    Raises `InvalidRequest`.
    """
    if not can_ask():
        raise InvalidRequest(gettext("No OAuth client is configured. Paste a key instead."))
    names = [name for name in SCOPES if name in request.POST.getlist("access")]
    if not names:
        raise InvalidRequest(gettext("Select at least one permission for agents."))
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    request.session[KEPT] = {"state": state, "verifier": verifier, "at": time.time()}
    return consent_address([SCOPES[name] for name in names], state, verifier, _back())


@page
@require_safe
@sensitive_variables()
def google_consent(request: PersonRequest) -> HttpResponse:
    """Handle Google's redirect, with `state` and a `code`, or an `error`."""
    kept = request.session.pop(KEPT, None)
    try:
        _check(kept, request.GET.get("state", ""))
        if request.GET.get("error") or not request.GET.get("code"):
            raise InvalidRequest(gettext("Google was not connected, because you did not consent."))
        stored = save_google_consent(
            request.GET["code"][:2_000], kept["verifier"], _back(), by=request.user
        )
    except ServiceError as error:
        messages.error(request, visible(error.message.removeprefix("key: ")))
    else:
        text = gettext("%(service)s is connected as %(account)s.")
        values = {"service": "Google", "account": stored.account}
        messages.success(request, visible(text % values))
    return redirect("web:connections")


def _check(kept: Any, state: str) -> None:
    fits = bool(kept) and hmac.compare_digest(kept["state"].encode(), state.encode())
    if not fits or not 0 <= time.time() - kept["at"] <= MAX_AGE:
        raise InvalidRequest(
            gettext(
                "This connection request is invalid or has expired. Start again under Connections."
            )
        )


def _back() -> str:
    return PageSettings.now().PUBLIC_URL.rstrip("/") + reverse("web:google-consent")


urlpatterns = [path("connections/google/", google_consent, name="google-consent")]
