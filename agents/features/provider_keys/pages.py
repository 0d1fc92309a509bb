"""The page where administrators set, test and remove keys. It never shows a key."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from agents.doors.web.navigation import MENU, NavigationEntry
from agents.doors.web.pages import PersonRequest, page
from agents.features.provider_keys.actions import (
    LONGEST,
    MANAGE,
    may_manage,
    remove_key,
    set_key,
    test_key,
)
from agents.features.provider_keys.queries import key_states
from agents.services.errors import InvalidRequest, ServiceError

NAVIGATION = [
    NavigationEntry(
        "web:provider-keys", _("Provider keys"), place=MENU, order=300, permission=MANAGE
    )
]


@sensitive_post_parameters()
@page
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables()
def provider_keys(request: PersonRequest) -> HttpResponse:
    """Show the providers. A POST has `provider`, and `action`: set (with `key`), remove or test."""
    if not may_manage(request.user):
        raise PermissionDenied
    if request.method != "POST":
        return _page(request)
    provider = request.POST.get("provider", "")
    try:
        match request.POST.get("action", ""):
            case "set":
                set_key(provider, request.POST.get("key", "")[: LONGEST + 1], by=request.user)
                text = gettext("The key of %(provider)s is stored.")
                messages.success(request, text % {"provider": provider})
            case "remove":
                remove_key(provider, by=request.user)
                text = gettext("The stored key of %(provider)s is removed.")
                messages.success(request, text % {"provider": provider})
            case "test":
                found = test_key(provider, by=request.user)
                (messages.success if found.works else messages.error)(request, found.text)
            case _:
                raise InvalidRequest(gettext("Submit the form with one of its buttons."))
    except ServiceError as error:
        text = error.message.removeprefix("key: ")
        return _page(request, provider, text, status=error.http_status)
    return redirect("web:provider-keys")


def _page(
    request: PersonRequest, provider: str = "", problem: str = "", *, status: int = 200
) -> HttpResponse:
    """Return the page. `problem` is shown at `provider`, or at the top."""
    states = key_states()
    is_known = any(state.provider == provider for state in states)
    context = {
        "states": states,
        "failed": provider if is_known else "",
        "problem": problem,
        "longest": LONGEST,
    }
    return render(request, "vel_provider_keys/provider_keys.html", context, status=status)


urlpatterns = [path("provider-keys/", provider_keys, name="provider-keys")]
