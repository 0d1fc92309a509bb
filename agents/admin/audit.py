"""The admin of the audit log. Read-only."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import SealedAdmin, tag
from agents.doors.admin.text import changes as shown_changes
from agents.hidden_text import visible
from agents.models import AuditEntry
from agents.selectors.audit import csv_lines, search_entries
from agents.selectors.visible import audit_for

MOST_ROWS = 50_000
"""Maximum number of rows in one file."""


class ActionFilter(admin.SimpleListFilter):
    """A filter by action. It lists the actions that occur in the log."""

    title = _("action")
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        found = AuditEntry.objects.order_by("action").values_list("action", flat=True).distinct()
        return [(action, action) for action in found]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> Any:
        return queryset if self.value() is None else queryset.filter(action=self.value())


@admin.register(AuditEntry)
class AuditAdmin(SealedAdmin):
    """The audit log with filters, search and CSV export. Read-only."""

    change_list_template = "admin/agents/auditentry/list.html"
    list_display = ["created_at", "who", "action", "on_what", "door_tag", "address", "why"]
    list_display_links = ["created_at", "action"]
    list_filter = ["created_at", "door", ActionFilter, "kind"]
    search_fields: ClassVar = ["actor"]
    search_help_text = _(
        "Words of the user, action, object or reason; or a complete id or address."
    )
    ordering = ["-id"]
    actions = None
    fields: ClassVar[list[Any]] = [
        "created_at",
        "who",
        "actor_id",
        "door_tag",
        "address",
        "shown_credential",
        "action",
        "kind",
        "on_what",
        "target_id",
        "what_changed",
        "why",
    ]
    readonly_fields: ClassVar[list[Any]] = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        return audit_for(request.user)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        return search_entries(queryset, search_term), False

    @admin.display(description=_("who"), ordering="actor")
    def who(self, entry: AuditEntry) -> str:
        return visible(entry.actor) or gettext("nobody")

    @admin.display(description=_("on what"))
    def on_what(self, entry: AuditEntry) -> str:
        return visible(entry.target)

    @admin.display(description=_("door"), ordering="door")
    def door_tag(self, entry: AuditEntry) -> SafeString:
        return tag("door", entry.get_door_display())

    @admin.display(description=_("credential"))
    def shown_credential(self, entry: AuditEntry) -> str:
        return visible(entry.credential)

    @admin.display(description=_("why"))
    def why(self, entry: AuditEntry) -> str:
        return visible(entry.note)

    @admin.display(description=_("what changed"))
    def what_changed(self, entry: AuditEntry) -> str:
        before = {visible(name): _or_nothing(pair[0]) for name, pair in entry.changes.items()}
        after = {visible(name): _or_nothing(pair[1]) for name, pair in entry.changes.items()}
        context = {"changes": shown_changes(before, after)}
        return render_to_string("admin/agents/auditentry/changes.html", context)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.export)
        return [path("csv/", view, name="agents_auditentry_csv"), *super().get_urls()]

    def export(self, request: HttpRequest) -> HttpResponse:
        """Download the filtered list as a CSV file."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        entries = list(self.get_changelist_instance(request).get_queryset(request)[: MOST_ROWS + 1])
        if len(entries) > MOST_ROWS:
            text = gettext(
                "There are more than %(most)s entries. Filter the list, then export again."
            )
            most = number_format(MOST_ROWS, force_grouping=True)
            self.report(request, text % {"most": most}, failed=True)
            back = reverse(f"{self.admin_site.name}:agents_auditentry_changelist")
            return HttpResponseRedirect(f"{back}?{request.GET.urlencode()}")
        return HttpResponse(
            "".join(csv_lines(entries)).encode("utf-8", "backslashreplace"),
            headers={
                "Content-Type": "text/csv; charset=utf-8",
                "Content-Disposition": 'attachment; filename="audit.csv"',
                "X-Content-Type-Options": "nosniff",
            },
        )


def _or_nothing(value: object) -> object:
    return "" if value is None else value
