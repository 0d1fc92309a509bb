"""The admin of API tokens: list, create and revoke."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import SealedAdmin, person, tag
from agents.models import ApiToken, TokenScope
from agents.services.errors import InvalidRequest
from agents.services.tokens import check_name, create_token, revoke_token


class TokenForm(forms.ModelForm):
    """A new token. Only superusers create tokens for others, because a token acts as its user."""

    scopes = forms.MultipleChoiceField(
        choices=TokenScope.choices,
        label=_("Scopes"),
        initial=[TokenScope.READ, TokenScope.RUN],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=3_650,
        initial=90,
        required=False,
        label=_("Days"),
        help_text=_("Days until it expires. Empty: never."),
    )

    class Meta:
        model = ApiToken
        fields = ["user", "name", "scopes"]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            check_name(name)
        except InvalidRequest as error:
            raise forms.ValidationError(error.message) from None
        return name


@admin.register(ApiToken)
class ApiTokenAdmin(SealedAdmin):
    """The admin of tokens. A token can only be revoked, so that the record remains."""

    form = TokenForm
    list_display = [
        "shown_prefix",
        "user",
        "name",
        "shown_scopes",
        "state",
        "last_used_at",
        "expires_at",
        "created_at",
    ]
    list_filter = [("revoked_at", admin.EmptyFieldListFilter), "expires_at", "created_at"]
    list_select_related = ["user"]
    search_fields = ["^prefix", "name", f"user__{get_user_model().USERNAME_FIELD}"]
    search_help_text = _("The beginning of a token, its name, or its user.")
    ordering = ["-id"]
    actions = ["revoke_selected"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("agents.change_apitoken"))

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> list[Any]:
        """Return the form fields, or for an existing token all fields except the digest."""
        if obj is not None:
            dates = ["created_at", "last_used_at", "expires_at", "revoked_at"]
            return ["user", "name", "shown_prefix", "shown_scopes", "state", *dates]
        own = ["name", "scopes", "days"]
        return ["user", *own] if request.user.is_superuser else own

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> list[Any]:
        return self.get_fields(request, obj) if obj is not None else []

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"user": request.user.pk}

    def save_model(
        self, request: HttpRequest, obj: ApiToken, form: TokenForm, change: bool
    ) -> None:
        """Create the token and show its secret once."""
        token, secret = create_token(
            obj.user if request.user.is_superuser else person(request),
            name=obj.name,
            scopes=form.cleaned_data["scopes"],
            days=form.cleaned_data["days"],
        )
        obj.pk = token.pk
        obj.refresh_from_db()
        text = gettext("The token of %(user)s is %(secret)s Copy it now: it cannot be shown again.")
        self.message_user(request, text % {"user": token.user, "secret": secret}, messages.WARNING)

    @admin.display(description=_("token"), ordering="prefix")
    def shown_prefix(self, token: ApiToken) -> str:
        return f"{token.prefix}…"

    @admin.display(description=_("scopes"))
    def shown_scopes(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    @admin.display(description=_("status"))
    def state(self, token: ApiToken) -> SafeString:
        if token.revoked_at is not None:
            return tag("cancelled", gettext("revoked"))
        if token.expires_at is not None and token.expires_at <= timezone.now():
            return tag("expired", gettext("expired"))
        return tag("completed", gettext("in force"))

    @admin.action(description=_("Revoke the selected tokens"), permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in self.chosen(request, queryset):
            if revoke_token(token.pk):
                self.log_change(request, token, "Revoked.")
                self.report(request, gettext("%(name)s: revoked.") % {"name": token})
            else:
                self.report(request, gettext("%(name)s: was revoked already.") % {"name": token})
