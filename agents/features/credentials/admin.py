"""Stored credentials: owner, service and date. Shared credentials are entered here."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.decorators import method_decorator
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from agents.features.credentials.actions import may_share, remove_any_credential
from agents.features.credentials.models import Credential
from agents.features.credentials.pages import cards, label_of
from agents.hidden_text import visible
from agents.services.errors import ServiceError


class SharedCredentialForm(forms.ModelForm):
    """A credential for all people without their own. Its service verifies it first.

    It has the fields of all cards, each with the provider before its name.
    """

    class Meta:
        model = Credential
        fields: ClassVar[list[str]] = []

    stored: Credential | None = None
    by: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for card in cards():
            for name, field in card.fields.items():
                self.fields[f"{card.provider}_{name}"] = copy.deepcopy(field)

    @sensitive_variables()
    def clean(self) -> dict[str, Any] | None:
        if self.errors:
            return self._without_values()
        there = [
            card for card in cards() if self.cleaned_data.get(f"{card.provider}_{card.main_field}")
        ]
        if len(there) != 1:
            labels = [str(card.fields[card.main_field].label) for card in cards()]
            text = gettext("Give exactly one of these: %(fields)s.")
            raise ValidationError(text % {"fields": ", ".join(labels)})
        [card] = there
        values = {name: self.cleaned_data[f"{card.provider}_{name}"] for name in card.fields}
        try:
            # Stored during validation, since only the service can verify the credential.
            self.stored = card.connect(values, by=self.by, shared=True)
        except ServiceError as error:
            name, colon, text = error.message.partition(": ")
            known = bool(colon) and name in card.fields
            raise ValidationError(
                {f"{card.provider}_{name}": text} if known else error.message
            ) from None
        return self._without_values()

    def _without_values(self) -> dict[str, Any]:
        """Keep no secret longer than needed."""
        self.cleaned_data.clear()
        return self.cleaned_data

    def save(self, commit: bool = True) -> Credential:
        assert self.stored is not None
        return self.stored

    def save_m2m(self) -> None:
        """Do nothing: the form has no many-to-many fields."""


@admin.register(Credential)
@method_decorator(sensitive_post_parameters(), name="changeform_view")
class CredentialAdmin(admin.ModelAdmin):
    """The stored credentials, without tokens. Those of people can only be removed here."""

    form = SharedCredentialForm
    list_display = ["provider", "shown_owner", "shown_account", "updated_at"]
    list_filter = ["provider"]
    search_fields = [f"owner__{get_user_model().USERNAME_FIELD}", "account"]
    list_select_related = ["owner"]
    actions = None

    @admin.display(description=_("for"), ordering="owner")
    def shown_owner(self, credential: Credential) -> str:
        return visible(str(credential.owner)) if credential.owner else pgettext("for", "everybody")

    @admin.display(description=_("acts as"), ordering="account")
    def shown_account(self, credential: Credential) -> str:
        return visible(credential.account)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        typed = [f"{card.provider}_{name}" for card in cards() for name in card.fields]
        return typed if obj is None else ["provider", "shown_owner", "shown_account"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [] if obj is None else ["provider", "shown_owner", "shown_account"]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is not None:
            return super().get_form(request, obj, change, **{**kwargs, "form": forms.ModelForm})
        # The form adds its fields itself, since Django would look for them on the model.
        form = super().get_form(request, obj, change, **{**kwargs, "fields": []})
        return type("SharedCredentialForm", (form,), {"by": request.user})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_share(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is not None and obj.owner_id is None:
            return may_share(request.user)
        return super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        text = gettext("%(service)s is connected as %(account)s.")
        values = {"service": label_of(obj.provider), "account": obj.account}
        messages.info(request, visible(text % values))

    def delete_model(self, request: HttpRequest, obj: Credential) -> None:
        remove_any_credential(obj.pk, by=request.user)
