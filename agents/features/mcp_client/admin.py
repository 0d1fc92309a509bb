"""Define MCP servers. Secrets that were entered are never displayed."""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from agents.doors.admin.journal import person
from agents.doors.admin.json_input import JsonText
from agents.doors.admin.typed_fields import TypedFieldAdmin
from agents.doors.agent_form.checks import at_its_field
from agents.features.mcp_client.actions import (
    check_server,
    may_configure,
    remove_server,
    save_server,
)
from agents.features.mcp_client.admin_tools import accept_page, fetch_page
from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.programs import PLACEHOLDER
from agents.features.mcp_client.queries import agents_with, agents_with_servers, status_of
from agents.hidden_text import visible
from agents.models import Agent
from agents.services.errors import InvalidRequest, ServiceError


class SecretLines(forms.CharField):
    """`NAME=value`, one in each line. Empty: the stored ones do not change."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Secrets"),
            required=False,
            strip=False,
            max_length=50_000,
            widget=forms.Textarea(
                attrs={
                    "rows": 4,
                    "class": "vel-json",
                    "spellcheck": "false",
                    "autocomplete": "off",
                }
            ),
            help_text=_(
                "One NAME=value in each line: environment variables of the program, or headers of "
                "the requests, for example Authorization=Bearer …. They are stored encrypted and "
                "not shown again. New lines replace all of them. Empty: no change. A single - "
                "removes them."
            ),
        )

    @sensitive_variables()
    def clean(self, value: Any) -> dict[str, str] | None:
        text = super().clean(value).replace("\r\n", "\n").strip("\n")
        if not text:
            return None
        if text.strip() == "-":
            return {}
        found: dict[str, str] = {}
        for number, line in enumerate(text.split("\n"), start=1):
            name, equals, secret = line.partition("=")
            if not equals or not name.strip() or name.strip() in found:
                text = gettext("Line %(number)s: write NAME=value, each name once.")
                raise ValidationError(text % {"number": number})
            found[name.strip()] = secret.strip()
        return found


class McpServerForm(forms.ModelForm):
    """The form of a server. It accepts secrets and never displays them."""

    arguments = JsonText(
        empty=[],
        label=_("Arguments"),
        help_text=format_lazy(
            _("{arguments} {placeholder} is replaced by the path of its persistent directory."),
            arguments=McpServer._meta.get_field("arguments").help_text,
            placeholder=PLACEHOLDER,
        ),
    )
    allowed_hosts = JsonText(
        empty=[],
        label=_("Allowed hosts"),
        help_text=McpServer._meta.get_field("allowed_hosts").help_text,
    )
    new_secrets = SecretLines()

    class Meta:
        model = McpServer
        fields = [
            *("slug", "description", "enabled", "transport", "command", "arguments", "toolbox"),
            *("network", "allowed_hosts", "sees_files", "url", "call_seconds"),
        ]
        widgets = {
            "description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
            "command": forms.TextInput(attrs={"size": 60}),
            "url": forms.TextInput(attrs={"size": 80}),
        }

    def _post_clean(self) -> None:
        """Check whether the server could be saved, after its fields are set."""
        super()._post_clean()  # type: ignore[misc]  # the stubs lack it
        if self.errors:
            return
        try:
            check_server(self.instance, self.cleaned_data["new_secrets"])
        except InvalidRequest as error:
            field, reason = at_its_field(error.message)
            field = "new_secrets" if field == "secrets" else field
            self.add_error(field if field in self.fields else None, reason)


@admin.register(McpServer)
class McpServerAdmin(TypedFieldAdmin):
    """The admin of MCP servers. Saves use `save_server`.

    Users without the permission `configure_mcpserver` can only read.
    """

    form = McpServerForm
    typed_field = "new_secrets"
    list_display = ["slug", "transport", "state", "used_by", "enabled", "checked_at"]
    list_filter = ["transport", "enabled", "network"]
    search_fields = ["slug", "description"]
    ordering = ["slug"]
    readonly_fields = [
        *("state", "tools_of_server", "stored_secrets", "last_problem", "used_by"),
        *("checked_at", "pinned_at", "pinned_by", "created_by", "created_at", "updated_at"),
    ]
    show_full_result_count = False
    fieldsets = [
        (None, {"fields": ["slug", "description", "enabled", "transport", "call_seconds"]}),
        (_("Tools"), {"fields": ["state", "tools_of_server", "last_problem"]}),
        (
            _("A program in the sandbox"),
            {
                "fields": [
                    *("command", "arguments", "toolbox", "network", "allowed_hosts"),
                    "sees_files",
                ]
            },
        ),
        (_("Streamable HTTP"), {"fields": ["url"]}),
        (_("Secrets"), {"fields": ["new_secrets", "stored_secrets"]}),
        (
            _("Record"),
            {
                "fields": [
                    *("used_by", "checked_at", "pinned_at", "pinned_by", "created_by"),
                    *("created_at", "updated_at"),
                ]
            },
        ),
    ]

    class Media:
        css = {"all": ["agents/admin/vel.css"]}

    def get_readonly_fields(self, request: HttpRequest, obj: McpServer | None = None) -> list[str]:
        """Make the slug of an existing server read-only, since agents refer to it."""
        return [*super().get_readonly_fields(request, obj), *([] if obj is None else ["slug"])]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and may_configure(person(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and may_configure(person(request))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and may_configure(person(request))

    @method_decorator(sensitive_post_parameters("new_secrets"))
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
        self, request: HttpRequest, obj: McpServer, form: McpServerForm, change: bool
    ) -> None:
        save_server(obj, secrets=form.cleaned_data["new_secrets"], by=person(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Report servers with agents, which cannot be deleted, before the deletion."""
        text = gettext(
            "%(server)s is a server of %(agents)s. Take it from them first, or clear its “enabled”."
        )
        kept = [
            text % {"server": server.slug, "agents": ", ".join(users)}
            for server in objs
            if (users := _users(server))
        ]
        return ([], {}, set(), kept) if kept else super().get_deleted_objects(objs, request)

    def delete_model(self, request: HttpRequest, obj: McpServer) -> None:
        remove_server(obj.pk, by=person(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[McpServer]) -> None:
        for server in queryset:
            try:
                remove_server(server.pk, by=person(request))
            except ServiceError as error:
                self.message_user(request, visible(error.message), messages.ERROR)

    def get_urls(self) -> list[Any]:
        accept = self.admin_site.admin_view(partial(accept_page, self))
        fetch = self.admin_site.admin_view(partial(fetch_page, self))
        return [
            path("<str:object_id>/tools/", accept, name="vel_mcp_client_mcpserver_tools"),
            path("<str:object_id>/fetch/", fetch, name="vel_mcp_client_mcpserver_fetch"),
            *super().get_urls(),
        ]

    @admin.display(description=_("status"))
    def state(self, server: McpServer) -> str:
        return status_of(server)

    @admin.display(description=_("tools"))
    def tools_of_server(self, server: McpServer) -> SafeString | str:
        """Return a link to the page for fetching, comparing and accepting tools."""
        if server._state.adding:
            return gettext("once it is saved")
        url = reverse("admin:vel_mcp_client_mcpserver_tools", args=[server.pk])
        what = gettext("fetch and accept")
        if server.tools:
            what = gettext("%(count)s accepted: look at them") % {"count": len(server.tools)}
        return format_html('<a href="{}">{}</a>', url, what)

    @admin.display(description=_("stored secrets"))
    def stored_secrets(self, server: McpServer) -> str:
        return ", ".join(server.secret_names) or gettext("none")

    @admin.display(description=_("problem"))
    def last_problem(self, server: McpServer) -> str:
        return visible(server.problem) or "-"

    @admin.display(description=_("agents"))
    def used_by(self, server: McpServer) -> str:
        return ", ".join(map(visible, _users(server))) or gettext("none")


def _users(server: McpServer) -> list[str]:
    return agents_with(server.slug, agents_with_servers(Agent.objects.all()))
