"""Stored credentials: whose, for what, since when. The shared ones are typed here."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from agents.google_workspace.access import OFFERED
from agents.google_workspace.keys import MAX_KEY
from agents.hidden_text import visible
from agents.models import Credential
from agents.services.credentials import may_share, remove_any_credential, save_slack_token
from agents.services.errors import ServiceError
from agents.services.google_credentials import save_google_key


class SharedCredentialForm(forms.ModelForm):
    """A credential for everybody who has none of their own. Its service is asked first."""

    token = forms.CharField(
        label="Slack bot token",
        required=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "size": 60}),
        help_text="It takes the place of the shared one that is stored.",
    )
    key = forms.CharField(
        label="Google JSON key",
        required=False,
        max_length=MAX_KEY,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "size": 60}),
        help_text="Instead: of a service account, or of the type authorized_user. The whole file.",
    )
    subject = forms.CharField(
        required=False,
        max_length=320,
        help_text="Whom the service account acts as, in everybody's runs.",
    )
    access = forms.MultipleChoiceField(
        required=False,
        choices=[(one.name, f"{one.label} ({one.name})") for one in OFFERED],
        widget=forms.CheckboxSelectMultiple,
        help_text="What the service account may do.",
    )

    class Meta:
        model = Credential
        fields: ClassVar[list[str]] = []

    stored: Credential | None = None
    by: Any = None

    @sensitive_variables()
    def clean(self) -> dict[str, Any] | None:
        token, key = self.cleaned_data.pop("token", ""), self.cleaned_data.pop("key", "")
        if self.errors:
            return self.cleaned_data
        if bool(token) == bool(key):
            raise ValidationError("Give a Slack bot token, or a Google JSON key.")
        try:
            # Stored here, since only the service's answer says whether the form is valid.
            if token:
                self.stored = save_slack_token(token, by=self.by, shared=True)
            else:
                self.stored = self._save_google(key)
        except ServiceError as error:
            name, colon, text = error.message.partition(": ")
            known = bool(colon) and name in self.fields
            raise ValidationError({name: text} if known else error.message) from None
        return self.cleaned_data

    @sensitive_variables()
    def _save_google(self, key: str) -> Credential:
        return save_google_key(
            key,
            subject=self.cleaned_data.get("subject", ""),
            access=tuple(self.cleaned_data.get("access", ())),
            by=self.by,
            shared=True,
        )

    def save(self, commit: bool = True) -> Credential:
        assert self.stored is not None
        return self.stored

    def save_m2m(self) -> None:
        """There is nothing of this kind."""


@admin.register(Credential)
@method_decorator(sensitive_post_parameters("token", "key"), name="changeform_view")
class CredentialAdmin(admin.ModelAdmin):
    """Nothing shows a token. Those of people are theirs: here they can only be removed."""

    form = SharedCredentialForm
    list_display = ["provider", "shown_owner", "shown_account", "updated_at"]
    list_filter = ["provider"]
    search_fields = [f"owner__{get_user_model().USERNAME_FIELD}", "account"]
    list_select_related = ["owner"]
    actions = None

    @admin.display(description="for", ordering="owner")
    def shown_owner(self, credential: Credential) -> str:
        return visible(str(credential.owner)) if credential.owner else "everybody"

    @admin.display(description="acts as", ordering="account")
    def shown_account(self, credential: Credential) -> str:
        return visible(credential.account)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        typed = ["token", "key", "subject", "access"]
        return typed if obj is None else ["provider", "shown_owner", "shown_account"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [] if obj is None else ["provider", "shown_owner", "shown_account"]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is not None:
            return super().get_form(request, obj, change, **{**kwargs, "form": forms.ModelForm})
        form = super().get_form(request, obj, change, **kwargs)
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
        messages.info(
            request, visible(f"{obj.get_provider_display()} is connected as {obj.account}.")
        )

    def delete_model(self, request: HttpRequest, obj: Credential) -> None:
        remove_any_credential(obj.pk, by=request.user)
