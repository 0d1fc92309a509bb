"""The page Connections: other services that a person's agents may use."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from agents.doors.web.navigation import MENU, NavigationEntry
from agents.doors.web.pages import PersonRequest, page
from agents.features.credentials.actions import CredentialRejected, remove_credential
from agents.features.credentials.public import credential_for, own_credentials
from agents.features.credentials.public_pages import ConnectionCard, typed_values
from agents.hidden_text import visible
from agents.kernel.features import collect
from agents.services.errors import InvalidRequest, ServiceError


@sensitive_post_parameters()
@page
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables()
def connections(request: PersonRequest) -> HttpResponse:
    """Show the services. A POST has `service`, a card's provider, and `action`.

    `action` is connect, remove or an action of the card.
    """
    if request.method != "POST":
        return _page(request)
    wanted = request.POST.get("service", "")
    card = next((each for each in cards() if each.provider == wanted), None)
    more: dict[str, Any] = {}
    try:
        if card is None:
            raise InvalidRequest(gettext("Submit the form with one of its buttons."))
        match action := request.POST.get("action", ""):
            case "connect":
                stored = card.connect(typed_values(card, request), by=request.user)
                values = {"service": card.label, "account": stored.account}
                text = gettext("%(service)s is connected as %(account)s.") % values
                messages.success(request, visible(text))
            case "remove":
                remove_credential(card.provider, by=request.user)
                text = gettext("Your %(service)s credential was removed.")
                messages.success(request, text % {"service": card.label})
            case _:
                # Its context is only shown in this response and is not stored.
                more = card.act(request, action)
                return _page(request, card, more)
    except ServiceError as error:
        more = {"problem": _without_field(error.message, card)}
        # Not 401: the person is signed in, but the service rejects the token.
        status = 400 if isinstance(error, CredentialRejected) else error.http_status
        return _page(request, card, more, status=status)
    return redirect("web:connections")


def _page(
    request: PersonRequest,
    acted: ConnectionCard | None = None,
    more: dict[str, Any] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Return the page. `more` is context for the card `acted`, or without a card for the page."""
    sections = [_section(request, card, (more or {}) if card is acted else {}) for card in cards()]
    context = {"sections": sections, **((more or {}) if acted is None else {})}
    return render(request, "vel_credentials/connections.html", context, status=status)


def _section(request: PersonRequest, card: ConnectionCard, more: dict[str, Any]) -> str:
    context = {
        "card": card,
        "own": own_credentials(request.user).filter(provider=card.provider).first(),
        "used": credential_for(request.user.pk, card.provider),
        **card.context(request),
        **more,
    }
    return render_to_string(card.template, context, request)


def _without_field(message: str, card: ConnectionCard | None) -> str:
    """Remove a field's name from the start of `message`: the page shows it at the card."""
    name, colon, text = message.partition(": ")
    return text if card is not None and colon and name in card.fields else message


urlpatterns = [path("connections/", connections, name="connections")]

NAVIGATION = [NavigationEntry("web:connections", _("Connections"), place=MENU, order=200)]


def cards() -> list[ConnectionCard]:
    """Return the cards of the installed features, in their order."""
    return [card for _, card in collect("connections", "CARDS", skip_broken=True)]


def label_of(provider: str) -> str:
    """Return the name of a service for people.

    That is `provider` itself if its feature is not installed.
    """
    return next((card.label for card in cards() if card.provider == provider), provider)
