"""Slack on the page Connections and in the admin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from agents.doors.web.pages import PersonRequest
from agents.features.credentials.public import Credential
from agents.features.credentials.public_pages import ConnectionCard
from agents.features.slack.actions import PROVIDER, save_slack_token
from agents.features.slack.client import SCOPES
from agents.selectors.visible import Person


class SlackCard(ConnectionCard):
    provider = PROVIDER
    label = "Slack"
    template = "vel_slack/card.html"
    main_field = "token"
    fields: ClassVar[Mapping[str, forms.Field]] = {
        "token": forms.CharField(
            label=_("Slack bot token"),
            required=False,
            max_length=1000,
            widget=forms.PasswordInput(attrs={"autocomplete": "off", "size": 60}),
            help_text=_("It replaces the shared token that is stored."),
        )
    }

    @sensitive_variables()
    def connect(self, values: Mapping[str, Any], *, by: Person, shared: bool = False) -> Credential:
        return save_slack_token(values["token"], by=by, shared=shared)

    def context(self, request: PersonRequest) -> dict[str, Any]:
        return {"scopes": SCOPES}


CARDS = (SlackCard(),)
