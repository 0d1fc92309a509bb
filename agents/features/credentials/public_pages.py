"""How a feature adds its service to the page Connections and to the admin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext

from agents.doors.web.pages import PersonRequest
from agents.features.credentials.models import Credential
from agents.selectors.visible import Person
from agents.services.errors import InvalidRequest


class ConnectionCard:
    """A service that people connect. Its feature lists an instance in `connections.CARDS`.

    The admin's form for a shared credential has the same `fields`.
    """

    provider: ClassVar[str]
    """The value of `Credential.provider`."""
    label: ClassVar[str]
    """The name of the service for people."""
    template: ClassVar[str]
    """Extends `vel_credentials/card.html`."""
    fields: ClassVar[Mapping[str, forms.Field]]
    """Fields of the form that connects the service. All are optional in the admin."""
    main_field: ClassVar[str]
    """The field that contains the secret."""

    def connect(self, values: Mapping[str, Any], *, by: Person, shared: bool = False) -> Credential:
        """Check `values` of `fields` with the service, and store them. Raises `ServiceError`.

        With `shared`, the credential is for all people without their own.
        """
        raise NotImplementedError

    def context(self, request: PersonRequest) -> dict[str, Any]:
        """Return context for `template`, besides the person's credentials `own` and `used`."""
        return {}

    def act(self, request: PersonRequest, action: str) -> dict[str, Any]:
        """Carry out another action of the card's forms; return more context for `template`."""
        raise InvalidRequest(gettext("Submit the form with one of its buttons."))


def typed_values(card: ConnectionCard, request: PersonRequest) -> dict[str, Any]:
    """Return the posted values of `card`'s fields, cut to one character above their limits."""
    values: dict[str, Any] = {}
    for name, field in card.fields.items():
        if isinstance(field, forms.MultipleChoiceField):
            values[name] = request.POST.getlist(name)[:100]
        else:
            longest = getattr(field, "max_length", None) or 1_000
            values[name] = request.POST.get(name, "")[: longest + 1]
    return values
