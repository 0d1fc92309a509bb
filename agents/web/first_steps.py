"""The first steps of a new installation, for its administrators, until they are done or hidden."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from agents.doors.web.pages import PersonRequest, page
from agents.models import Agent, ApprovalRequest
from agents.providers.registry import MAKERS, PROVIDERS
from agents.providers.stored_keys import stored_key
from agents.selectors.visible import Person
from agents.services.agent_definitions.actions import SCRIPTED, default_provider
from agents.services.agent_definitions.settings_places import settings_of
from agents.services.demo import DEMO_SLUG
from agents.web.theme import YEAR

COOKIE = "vel_first_steps"
HIDDEN = "hidden"
"""The value of the cookie after an administrator has hidden the steps in this browser."""
_STARTED_WITH = (DEMO_SLUG, "assistant")
"""Agents that Vel itself creates."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `url` is the page where it is done; empty for the settings of the server."""

    title: str
    help: str
    url: str
    is_done: bool


def first_steps(request: HttpRequest, person: Person) -> list[Step]:
    """Return the steps, or none if all are done, hidden, or not for this person."""
    if not getattr(person, "is_superuser", False) or request.COOKIES.get(COOKIE) == HIDDEN:
        return []
    steps = [
        Step(
            gettext("Use a real model"),
            gettext(
                "Store the key of a provider. Or set ANTHROPIC_API_KEY or the base URL of a local "
                "model in the environment of the server, and start it again. Until then, an "
                "offline script answers."
            ),
            _reverse("web:provider-keys"),
            _has_model(),
        ),
        Step(
            gettext("Create your first agent"),
            gettext("Start from a template, or describe what the agent should do."),
            reverse("web:new-agent"),
            Agent.objects.exclude(slug__in=_STARTED_WITH).exists(),
        ),
        Step(
            gettext("Decide a request"),
            gettext("Agents ask before they act. The demo asks too."),
            _reverse("web:approvals"),
            ApprovalRequest.objects.filter(decided_by__isnull=False).exists(),
        ),
        Step(
            gettext("Invite a colleague"),
            gettext("Create a user, and send them the address of this site."),
            _user_form(),
            get_user_model().objects.filter(is_active=True).count() > 1,
        ),
    ]
    return [] if all(step.is_done for step in steps) else steps


def _has_model() -> bool:
    if default_provider() != SCRIPTED:
        return True
    real = [settings_of(name) for name in PROVIDERS if name != SCRIPTED]
    return any(settings.api_key or settings.base_url for settings in real) or any(
        stored_key(maker) for maker in MAKERS
    )


def _user_form() -> str:
    names = get_user_model()._meta
    return _reverse(f"admin:{names.app_label}_{names.model_name}_add")


def _reverse(name: str) -> str:
    """Return the address of a page, or "" if this installation does not have it."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


@page
@require_POST
def hide(request: PersonRequest) -> HttpResponse:
    """Hide the steps in this browser, and go back to the home page."""
    response = redirect("web:home")
    response.set_cookie(
        COOKIE, HIDDEN, max_age=YEAR, samesite="Lax", secure=request.is_secure(), httponly=True
    )
    return response
