"""The stored credentials of all people, and shared ones. Their secrets are never shown."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.views.decorators.debug import sensitive_variables
from rest_framework import exceptions, serializers

from agents.doors.rest.managed.admin_rows import AdminRows
from agents.doors.rest.managed.fields import Field, NameField, moment_field
from agents.doors.rest.managed.objects import Managed, Own
from agents.doors.rest.managed.views import endpoints
from agents.doors.rest.serializers import JsonObject, Text
from agents.features.credentials.admin import CredentialAdmin
from agents.features.credentials.models import Credential
from agents.features.credentials.pages import cards


def _provider(**options: Any) -> Field:
    return Text(max_length=50, help_text="The service, as slack or google.", **options)


def _values(**options: Any) -> Field:
    return JsonObject(
        help_text='The values that the service needs, as {"token": …}. They are stored '
        "encrypted and never shown.",
        **options,
    )


@sensitive_variables()
def _create(door: AdminRows, body: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Store a credential for all people, with the admin's form, which asks its service."""
    provider, values = body.get("provider", ""), body.get("values", {})
    card = next((each for each in cards() if each.provider == provider), None)
    if card is None:
        known = ", ".join(each.provider for each in cards()) or "none"
        raise exceptions.ValidationError({"provider": [f"There are: {known}."]})
    unknown = [str(name)[:100] for name in values if name not in card.fields]
    if unknown:
        known = ", ".join(card.fields)
        raise exceptions.ValidationError(
            {"values": [f"{unknown[0]}: unknown; known are: {known}."]}
        )
    kind = door.admin.get_form(door.http, None, change=False)
    form = kind(data={f"{provider}_{name}": value for name, value in values.items()})
    if not form.is_valid():
        problems = [
            f"{name.removeprefix(provider + '_')}: {each}" if name != "__all__" else str(each)
            for name, errors in form.errors.items()
            for each in errors
        ]
        raise exceptions.ValidationError({"values": problems})
    return door.save_form(form, change=False)


CREDENTIALS = Managed(
    model=Credential,
    admin=CredentialAdmin,
    name="stored_credential",
    plural="stored_credentials",
    rows="stored-credentials",
    what="A credential for another service. `owner` null: one for all people who have none.",
    own={
        "provider": Own(body=_provider, shown=serializers.CharField()),
        "values": Own(body=_values),
    },
    shown={
        "owner": NameField(allow_null=True),
        "account": serializers.CharField(allow_blank=True, help_text="The account that it uses."),
        "updated_at": moment_field(),
    },
    filters={"provider": "provider", "owner": f"owner__{get_user_model().USERNAME_FIELD}"},
    changes=False,
    create=_create,
    who={
        "create": "staff with `vel_credentials.share_credential`",
        "delete": "staff with `vel_credentials.delete_credential`; shared ones: also "
        "`vel_credentials.share_credential`",
    },
)

OBJECTS = [CREDENTIALS]
urlpatterns = endpoints(CREDENTIALS)
