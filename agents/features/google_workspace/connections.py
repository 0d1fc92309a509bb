"""Google on the page Connections and in the admin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from agents.doors.web.pages import PersonRequest
from agents.features.credentials.public import Credential
from agents.features.credentials.public_pages import ConnectionCard
from agents.features.google_workspace.actions import PROVIDER, save_google_key
from agents.features.google_workspace.client.access import OFFERED
from agents.features.google_workspace.client.keys import MAX_KEY
from agents.features.google_workspace.client.tokens import can_ask
from agents.features.google_workspace.pages import begin_consent
from agents.selectors.visible import Person


class GoogleCard(ConnectionCard):
    provider = PROVIDER
    label = "Google"
    template = "vel_google_workspace/card.html"
    main_field = "key"
    fields: ClassVar[Mapping[str, forms.Field]] = {
        "key": forms.CharField(
            label=_("Google JSON key"),
            required=False,
            max_length=MAX_KEY,
            widget=forms.PasswordInput(attrs={"autocomplete": "off", "size": 60}),
            help_text=_("Of a service account or of the type authorized_user. The whole file."),
        ),
        "subject": forms.CharField(
            required=False,
            max_length=320,
            help_text=_("The user that the service account acts as, in the runs of all users."),
        ),
        "access": forms.MultipleChoiceField(
            required=False,
            choices=[(one.name, format_lazy("{} ({})", one.label, one.name)) for one in OFFERED],
            widget=forms.CheckboxSelectMultiple,
            help_text=_("Permissions of the service account."),
        ),
    }

    @sensitive_variables()
    def connect(self, values: Mapping[str, Any], *, by: Person, shared: bool = False) -> Credential:
        return save_google_key(
            values["key"],
            subject=values["subject"],
            access=tuple(values["access"]),
            by=by,
            shared=shared,
        )

    def context(self, request: PersonRequest) -> dict[str, Any]:
        return {
            "offered": OFFERED,
            "can_ask": can_ask(),
            "subject": request.POST.get("subject", ""),
            "wanted_access": request.POST.getlist("access"),
        }

    def act(self, request: PersonRequest, action: str) -> dict[str, Any]:
        if action != "ask":
            return super().act(request, action)
        # A link, since the pages' content policy allows no form that leads to another site.
        return {"consent_address": begin_consent(request)}


CARDS = (GoogleCard(),)
