"""A person's webhooks that start runs. A secret is shown only in the answer that created it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from agents.doors.web.navigation import MENU, NavigationEntry
from agents.doors.web.pages import PersonRequest, page
from agents.features.inbound_webhooks.actions import (
    MOST_PER_MINUTE,
    DayBudget,
    budget_of,
    change_inbound_webhook,
    create_inbound_webhook,
    delete_inbound_webhook,
    enable_inbound_webhook,
    rotate_secret,
)
from agents.features.inbound_webhooks.api import inbound_webhooks_for
from agents.features.inbound_webhooks.models import (
    InboundWebhook,
    InboundWebhookRefusal,
    InboundWebhookSigning,
)
from agents.hidden_text import visible
from agents.models import ThreadPolicy
from agents.selectors.visible import agents_for
from agents.services.errors import InvalidRequest, ServiceError
from agents.services.runs.trigger_rights import MESSAGE_CHARACTERS, find_agent
from agents.services.tokens import NAME_CHARACTERS
from agents.settings import PageSettings

LIST = "vel_inbound_webhooks/inbound_webhooks.html"
ONE = "vel_inbound_webhooks/inbound_webhook.html"
SHOWN_DELIVERIES = 30
SHOWN_REFUSALS = 20


@sensitive_post_parameters("secret")
@page
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("secret")
def webhooks(request: PersonRequest) -> HttpResponse:
    """List the webhooks with a form for a new one. A POST creates it and shows its secret."""
    if request.method != "POST":
        return render(request, LIST, _list(request))
    try:
        signing = request.POST.get("signing", "")
        hook = _typed(request, InboundWebhook(owner_id=request.user.pk, signing=signing))
        typed_secret = request.POST.get("secret", "").strip()
        secret = create_inbound_webhook(
            hook, by=request.user, budget=_budget(request), secret=typed_secret
        )
    except ServiceError as error:
        context = {**_list(request), "problem": error.message, "typed": request.POST}
        return render(request, LIST, context, status=error.http_status)
    context = {**_one(request, hook), "secret": "" if typed_secret else secret}
    return render(request, ONE, context)


@sensitive_post_parameters("secret")
@page
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("secret")
def webhook(request: PersonRequest, hook_id: str) -> HttpResponse:
    """Show a webhook. A POST has `action`: save (with the form), rotate, pause, go_on or delete."""
    rows = inbound_webhooks_for(request.user).select_related("agent", "owner")
    found = rows.filter(pk=hook_id).first()
    if found is None:
        raise Http404
    if request.method != "POST":
        return render(request, ONE, _one(request, found))
    try:
        match request.POST.get("action"):
            case "save":
                change_inbound_webhook(
                    _typed(request, found), by=request.user, budget=_budget(request)
                )
                messages.success(request, gettext("Saved."))
            case "rotate":
                typed_secret = request.POST.get("secret", "").strip()
                secret = rotate_secret(found.pk, by=request.user, secret=typed_secret)
                context = {
                    **_one(request, rows.get(pk=hook_id)),
                    "secret": "" if typed_secret else secret,
                }
                return render(request, ONE, context)
            case "pause":
                enable_inbound_webhook(found.pk, False, by=request.user)
                messages.success(request, gettext("Paused."))
            case "go_on":
                enable_inbound_webhook(found.pk, True, by=request.user)
                messages.success(request, gettext("It takes requests again."))
            case "delete":
                delete_inbound_webhook(found.pk, by=request.user)
                text = gettext("%(name)s was deleted; its runs stay.") % {"name": found.name}
                messages.success(request, visible(text))
                return redirect("web:webhooks")
            case _:
                raise InvalidRequest(gettext("Submit the form with one of its buttons."))
    except ServiceError as error:
        context = {**_one(request, rows.get(pk=hook_id)), "problem": error.message}
        if request.POST.get("action") == "save":
            context["typed"] = request.POST
        return render(request, ONE, context, status=error.http_status)
    return redirect("web:webhook", hook_id=found.pk)


def _typed(request: PersonRequest, into: InboundWebhook) -> InboundWebhook:
    into.name = request.POST.get("name", "").strip()
    into.agent = find_agent(request.POST.get("agent", ""), request.user)
    into.message = request.POST.get("message", "").replace("\r\n", "\n")
    into.thread_policy = request.POST.get("thread_policy", "")
    into.per_minute = _whole(request.POST.get("per_minute", "")) or 0
    return into


def _budget(request: PersonRequest) -> DayBudget:
    cost = request.POST.get("max_cost_a_day", "").strip()
    try:
        dollars = Decimal(cost) if cost else None
    except InvalidOperation:
        dollars = None if not cost else Decimal("NaN")
    if dollars is not None and not (dollars.is_finite() and dollars < 1_000_000):
        raise InvalidRequest(gettext("Write the cost in US dollars, as 2.50."))
    return DayBudget(_whole(request.POST.get("max_tokens_a_day", "")), dollars)


def _whole(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise InvalidRequest(gettext("Write a whole number."))
    return int(text)


def _list(request: PersonRequest) -> dict[str, Any]:
    rows = inbound_webhooks_for(request.user).select_related("agent")
    return {"hooks": rows, **_form(request), "given": {"per_minute": "30"}}


def _one(request: PersonRequest, hook: InboundWebhook) -> dict[str, Any]:
    budget = budget_of(hook)
    return {
        "hook": hook,
        "address": address_of(hook),
        "deliveries": hook.deliveries.select_related("run")[:SHOWN_DELIVERIES],
        "refusals": InboundWebhookRefusal.objects.filter(subject=hook.pk)[:SHOWN_REFUSALS],
        **_form(request),
        "given": {
            "name": hook.name,
            "agent": hook.agent.slug,
            "message": hook.message,
            "thread_policy": hook.thread_policy,
            "per_minute": str(hook.per_minute),
            "max_tokens_a_day": _shown(budget.max_tokens if budget else None),
            "max_cost_a_day": _shown(budget.max_cost if budget else None),
        },
    }


def address_of(hook: InboundWebhook) -> str:
    """Return the address for senders; empty in a project without these requests."""
    try:
        address = reverse("hooks:receive", args=[hook.pk])
    except NoReverseMatch:
        return ""
    return PageSettings.now().PUBLIC_URL.rstrip("/") + address


def _shown(number: int | Decimal | None) -> str:
    return "" if number is None else str(number)


def _form(request: PersonRequest) -> dict[str, Any]:
    return {
        "agents": agents_for(request.user).order_by("name").values_list("slug", "name"),
        "thread_policies": ThreadPolicy.choices,
        "signings": InboundWebhookSigning.choices,
        "name_characters": NAME_CHARACTERS,
        "message_characters": MESSAGE_CHARACTERS,
        "most_per_minute": MOST_PER_MINUTE,
    }


urlpatterns = [
    path("webhooks/", webhooks, name="webhooks"),
    path("webhooks/<slug:hook_id>/", webhook, name="webhook"),
]

NAVIGATION = [NavigationEntry("web:webhooks", _("Webhooks"), place=MENU, order=400)]
