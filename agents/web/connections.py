"""Other services that a person's agents may act in. Tokens are typed here and never shown."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from agents.hidden_text import visible
from agents.models import CredentialProvider
from agents.selectors.credentials import credential_for, own_credentials
from agents.services.credentials import remove_credential, save_slack_token
from agents.services.errors import InvalidRequest, ServiceError
from agents.slack.client import SCOPES
from agents.web.pages import PersonRequest, page
from agents.web.skills import status_of

SLACK = CredentialProvider.SLACK


@sensitive_post_parameters("token")
@page
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("token")
def connections(request: PersonRequest) -> HttpResponse:
    """A POST with `action` connect and a `token`, or with `action` remove."""
    if request.method != "POST":
        return render(request, "web/connections.html", _context(request))
    try:
        match request.POST.get("action"):
            case "connect":
                stored = save_slack_token(request.POST.get("token", "")[:1000], by=request.user)
                messages.success(request, visible(f"Slack is connected as {stored.account}."))
            case "remove":
                remove_credential(SLACK, by=request.user)
                messages.success(request, "Your Slack token was removed.")
            case _:
                raise InvalidRequest("Press one of the buttons.")
    except ServiceError as error:
        problem = error.message.removeprefix("token: ")
        context = {**_context(request), "problem": problem}
        return render(request, "web/connections.html", context, status=status_of(error))
    return redirect("web:connections")


def _context(request: PersonRequest) -> dict[str, Any]:
    return {
        "own": own_credentials(request.user).filter(provider=SLACK).first(),
        "used": credential_for(request.user.pk, SLACK),
        "scopes": SCOPES,
    }
