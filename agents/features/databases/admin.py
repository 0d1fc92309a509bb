"""Define databases for agents. A typed URL is never shown again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from agents.doors.admin.journal import person
from agents.doors.admin.json_input import JsonText
from agents.doors.admin.typed_fields import TypedFieldAdmin
from agents.doors.agent_form.checks import at_its_field
from agents.features.databases.actions import (
    check_connection,
    may_allow_writes,
    may_configure,
    remove_connection,
    save_connection,
    try_connection,
)
from agents.features.databases.models import DatabaseConnection
from agents.features.databases.queries import shown_address
from agents.hidden_text import visible
from agents.services.errors import InvalidRequest, ServiceError

TESTS_AT_ONCE = 3
"""Connections of one test. Each can take ten seconds, during which the page waits."""


class ConnectionForm(forms.ModelForm):
    """A form of a connection. The URL is write-only; an empty field keeps the stored one."""

    new_url = forms.CharField(
        label=_("URL"),
        required=False,
        max_length=2_000,
        widget=forms.PasswordInput(
            render_value=False, attrs={"autocomplete": "new-password", "size": 80}
        ),
        help_text=_(
            "postgresql://user:password@host:5432/name, mysql://user:password@host/name or "
            "sqlite:////absolute/path. It is stored encrypted and not shown again. Empty: the one "
            "that is stored stays."
        ),
    )
    hidden_columns = JsonText(
        empty=[],
        label=_("Hidden columns"),
        help_text=DatabaseConnection._meta.get_field("hidden_columns").help_text,
    )

    class Meta:
        model = DatabaseConnection
        fields = [
            "name",
            "description",
            "statement_seconds",
            "max_rows",
            "max_bytes",
            "hidden_columns",
            "allow_privileged",
            "allow_writes",
            "allow_routines",
        ]
        widgets = {"description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"})}

    def _post_clean(self) -> None:
        """Check whether the connection could be saved, after its fields are set."""
        super()._post_clean()  # type: ignore[misc]  # the stubs lack it
        if self.errors:
            return
        try:
            check_connection(self.instance, self.cleaned_data["new_url"])
        except InvalidRequest as error:
            field, reason = at_its_field(error.message)
            field = "new_url" if field == "url" else field
            self.add_error(field if field in self.fields else None, reason)

    def clean_name(self) -> str:
        """Refuse the name of another shared connection. The constraint's message is unclear."""
        name: str = self.cleaned_data["name"]
        others = DatabaseConnection.objects.filter(agent=None, name=name)
        if others.exclude(pk=self.instance.pk).exists():
            raise ValidationError(gettext("There is a database of this name: choose another."))
        return name


@admin.register(DatabaseConnection)
class DatabaseConnectionAdmin(TypedFieldAdmin):
    """The admin of database connections. Saves use `save_connection`.

    Users without the permission `configure_database` can only read. Changing a connection with
    `allow_writes` also requires the permission to allow writes. Nobody can change private
    connections here.
    """

    form = ConnectionForm
    typed_field = "new_url"
    list_display = [
        "name",
        "address",
        "used_by",
        "allow_writes",
        "allow_privileged",
        "owner",
        "updated_at",
    ]
    list_filter = ["allow_writes", "allow_privileged"]
    list_select_related = ["owner"]
    search_fields = ["name", "description"]
    ordering = ["name", "id"]
    readonly_fields = ["address", "used_by", "created_by", "created_at", "updated_at"]
    actions = ["test_selected"]
    show_full_result_count = False
    fieldsets = [
        (None, {"fields": ["name", "description", "new_url", "address"]}),
        (_("Limits"), {"fields": ["statement_seconds", "max_rows", "max_bytes"]}),
        (_("Protection"), {"fields": ["hidden_columns", "allow_privileged"]}),
        (_("Writing"), {"fields": ["allow_writes", "allow_routines"]}),
        (_("Record"), {"fields": ["used_by", "created_by", "created_at", "updated_at"]}),
    ]

    class Media:
        css = {"all": ["agents/admin/vel.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[DatabaseConnection]:
        """Return the connections. Only operators see those of people's command lines."""
        rows = super().get_queryset(request).prefetch_related("agents")
        return rows if may_configure(person(request)) else rows.filter(agent=None)

    def get_readonly_fields(
        self, request: HttpRequest, obj: DatabaseConnection | None = None
    ) -> list[str]:
        """Make the name of an existing connection read-only, since active runs refer to it.

        So are the fields about writes for users without the permission to allow writes.
        """
        fixed = [] if obj is None else ["name"]
        if not may_allow_writes(person(request)):
            fixed += ["allow_writes", "allow_routines"]
        return [*super().get_readonly_fields(request, obj), *fixed]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and may_configure(person(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_change_permission(request, obj) and may_configure(person(request))
        if obj is None:
            return allowed
        may_write = not obj.allow_writes or may_allow_writes(person(request))
        return allowed and may_write and not obj.is_private

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and may_configure(person(request))

    @method_decorator(sensitive_post_parameters("new_url"))
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        return super().changeform_view(request, object_id, form_url, extra_context)

    @method_decorator(sensitive_variables())
    def save_model(
        self, request: HttpRequest, obj: DatabaseConnection, form: ConnectionForm, change: bool
    ) -> None:
        save_connection(obj, url=form.cleaned_data["new_url"], by=person(request))

    def delete_model(self, request: HttpRequest, obj: DatabaseConnection) -> None:
        remove_connection(obj.pk, by=person(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[DatabaseConnection]) -> None:
        for connection in queryset:
            remove_connection(connection.pk, by=person(request))

    @admin.display(description=_("leads to"))
    def address(self, connection: DatabaseConnection) -> str:
        """Return the parts of the URL without the password."""
        return visible(shown_address(connection)) or "-"

    @admin.display(description=_("agents"))
    def used_by(self, connection: DatabaseConnection) -> SafeString | str:
        links = (
            (reverse("admin:agents_agent_change", args=[agent.pk]), visible(agent.name))
            for agent in connection.agents.all()
        )
        return format_html_join(", ", '<a href="{}">{}</a>', links) or gettext("none")

    @admin.action(description=_("Test the connection"), permissions=["change"])
    def test_selected(self, request: HttpRequest, queryset: QuerySet[DatabaseConnection]) -> None:
        chosen = list(queryset[: TESTS_AT_ONCE + 1])
        if len(chosen) > TESTS_AT_ONCE:
            text = gettext("Select %(most)s at most.") % {"most": TESTS_AT_ONCE}
            self.message_user(request, text, level=messages.ERROR)
            return
        for connection in chosen:
            try:
                try_connection(connection, by=person(request))
            except ServiceError as error:
                text = f"{connection.name}: {visible(error.message)}"
                self.message_user(request, text, messages.ERROR)
            else:
                text = gettext("%(name)s: a statement that reads went through.")
                self.message_user(request, text % {"name": connection.name})
