"""The user's own page: API tokens and the password."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from agents.doors.web.pages import PersonRequest, page
from agents.models import TokenScope
from agents.selectors.visible import tokens_for
from agents.services.errors import InvalidRequest, ServiceError
from agents.services.tokens import (
    MAX_OWN_DAYS,
    NAME_CHARACTERS,
    create_own_token,
    in_force,
    revoke_own_token,
    token_state,
)
from agents.web.login import limited_password_change

DAYS = (7, 30, 90, MAX_OWN_DAYS)
USUAL_DAYS = "30"
SHOWN_ENDED = 20


@page
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("secret")
def profile(request: PersonRequest) -> HttpResponse:
    """Show the page. A POST has `action` create (`name`, `scopes`, `days`) or revoke (`token`).

    The response to `create` shows the secret. It cannot be read again.
    """
    if request.method != "POST":
        return render(request, "web/profile.html", _context(request))
    try:
        match request.POST.get("action"):
            case "create":
                token, secret = create_own_token(
                    request.user,
                    name=request.POST.get("name", "").strip(),
                    scopes=request.POST.getlist("scopes"),
                    days=_number(request.POST.get("days")),
                )
                made = {"made": token, "secret": secret}
                return render(request, "web/profile.html", {**_context(request), **made})
            case "revoke":
                ended = revoke_own_token(_number(request.POST.get("token")), by=request.user)
                text = gettext("The token %(prefix)s… is revoked.") % {"prefix": ended.prefix}
                messages.success(request, text)
            case _:
                raise InvalidRequest(gettext("Press one of the buttons."))
    except ServiceError as error:
        context = {**_context(request), "problem": error.message, "typed": request.POST}
        context["ticked"] = request.POST.getlist("scopes")
        return render(request, "web/profile.html", context, status=error.http_status)
    return redirect("web:profile")


password = sensitive_post_parameters()(
    page(
        limited_password_change(
            PasswordChangeView.as_view(
                template_name="web/password.html", success_url=reverse_lazy("web:profile")
            )
        )
    )
)
"""Django's view. A new password ends the user's other sessions, but not the tokens."""


def _context(request: PersonRequest) -> dict[str, Any]:
    tokens = tokens_for(request.user).order_by("-pk")
    good = in_force(tokens)
    words = {"revoked": gettext("revoked"), "expired": gettext("expired")}
    ended = [
        (token, words.get(token_state(token), ""))
        for token in tokens.exclude(pk__in=good)[:SHOWN_ENDED]
    ]
    return {
        "good": good,
        "ended": ended,
        "scopes": TokenScope.choices,
        "ticked": [TokenScope.READ, TokenScope.RUN],
        "days": [str(days) for days in DAYS],
        "usual_days": USUAL_DAYS,
        "name_characters": NAME_CHARACTERS,
    }


def _number(text: str | None) -> int:
    if text is None or not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise InvalidRequest(gettext("Choose one of the list."))
    return int(text)
