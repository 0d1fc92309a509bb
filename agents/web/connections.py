"""Other services that a person's agents may act in. Tokens are typed here and never shown."""

from __future__ import annotations

import re
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from agents.google_workspace.access import OFFERED
from agents.google_workspace.consent import can_ask
from agents.google_workspace.keys import MAX_KEY
from agents.hidden_text import visible
from agents.models import CredentialProvider
from agents.selectors.credentials import credential_for, own_credentials
from agents.services.credentials import remove_credential, save_slack_token
from agents.services.errors import InvalidRequest, ServiceError
from agents.services.google_credentials import save_google_key
from agents.slack.client import SCOPES
from agents.web.google_consent import begin_consent
from agents.web.pages import PersonRequest, page

SLACK = CredentialProvider.SLACK
GOOGLE = CredentialProvider.GOOGLE


@sensitive_post_parameters("token", "key")
@page
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables()
def connections(request: PersonRequest) -> HttpResponse:
    """A POST with `action` connect and a `token`, or remove; for Google with its own two."""
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
            case "ask_google":
                # A link to follow: the pages' policy lets no form lead to another site.
                there = {**_context(request), "consent_address": begin_consent(request)}
                return render(request, "web/connections.html", there)
            case "connect_google":
                stored = save_google_key(
                    request.POST.get("key", "")[: MAX_KEY + 1],
                    subject=request.POST.get("subject", "")[:320],
                    access=tuple(request.POST.getlist("access")[: len(OFFERED)]),
                    by=request.user,
                )
                messages.success(request, visible(f"Google is connected as {stored.account}."))
            case "remove_google":
                remove_credential(GOOGLE, by=request.user)
                messages.success(request, "Your Google credential was removed.")
            case _:
                raise InvalidRequest("Press one of the buttons.")
    except ServiceError as error:
        at_google = str(request.POST.get("action", "")).endswith("_google")
        name = "google_problem" if at_google else "problem"
        problem = re.sub("^(token|key|subject|scopes|access): ", "", error.message)
        context = {**_context(request), name: problem}
        return render(request, "web/connections.html", context, status=error.http_status)
    return redirect("web:connections")


def _context(request: PersonRequest) -> dict[str, Any]:
    return {
        "own": own_credentials(request.user).filter(provider=SLACK).first(),
        "used": credential_for(request.user.pk, SLACK),
        "scopes": SCOPES,
        "own_google": own_credentials(request.user).filter(provider=GOOGLE).first(),
        "used_google": credential_for(request.user.pk, GOOGLE),
        "offered": OFFERED,
        "can_ask": can_ask(),
        "subject": request.POST.get("subject", ""),
        "wanted_access": request.POST.getlist("access"),
    }
