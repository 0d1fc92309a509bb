"""Admin pages for memory files, for their history with restoring, and for edit requests."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import JournalAdmin, person, tag
from agents.doors.admin.text import shown
from agents.hidden_text import visible
from agents.models import ApprovalRequest
from agents.review.spans import marked_text
from agents.selectors.visible import VIEW_ALL, agents_for, approvals_for, approved_agents
from agents.services.approvals.request_review import review_of_request
from agents.services.errors import ServiceError
from memory.actions.changes import restore_revision
from memory.models import MemoryEditRequest, MemoryFile, MemoryRevision
from memory.queries.rights import may_change_memory
from memory.review import memory_edit_review, purged_review
from text_scanner import scan

SHOWN_REVISIONS = 200


class MemoryAdmin(JournalAdmin):
    """Show the rows of agents that the user may use or approve for; all with `view_all_runs`."""

    list_select_related = ["agent"]
    search_fields = ["path", "=agent__slug", "=agent__id"]
    goes_with_user = True
    search_help_text = _("A part of a path, or an agent's slug or id.")

    class Media:
        css = {"all": ["agents/web/review.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        user = person(request)
        if request.user.has_perm(VIEW_ALL):
            return rows
        mine = models.Q(agent__in=agents_for(user).values("pk"))
        return rows.filter(mine | models.Q(agent__in=approved_agents(user)))

    @admin.display(description=_("agent"), ordering="agent__slug")
    def shown_agent(self, row: Any) -> str:
        return visible(row.agent.slug)

    @admin.display(description=_("size"), ordering="size_bytes")
    def size(self, row: Any) -> str:
        size = number_format(row.size_bytes, force_grouping=True)
        return gettext("%(size)s bytes") % {"size": size}


@admin.register(MemoryFile)
class MemoryFileAdmin(MemoryAdmin):
    page_template = "admin/memory/file.html"
    list_display = ["path", "shown_agent", "size", "revision", "updated_at"]
    list_filter = ["updated_at", "agent"]
    ordering = ["agent__slug", "path"]

    def page_context(self, request: HttpRequest, row: MemoryFile) -> dict[str, Any]:
        revisions = MemoryRevision.objects.filter(agent=row.agent_id, path=row.path)
        found = revisions.defer("content").select_related("created_by").order_by("-number")
        return {
            "title": gettext("%(path)s of %(agent)s")
            % {"path": row.path, "agent": visible(row.agent.slug)},
            "file": row,
            "agent_name": visible(row.agent.name),
            "text": marked_text(row.content, scan(row.content)),
            "revisions": [(entry, shown(entry.reason)) for entry in found[:SHOWN_REVISIONS]],
        }


@admin.register(MemoryRevision)
class MemoryRevisionAdmin(MemoryAdmin):
    """Show revisions read-only; a POST to a revision's page restores that revision."""

    page_template = "admin/memory/revision.html"
    list_display = ["path", "number", "shown_agent", "operation", "size", "by", "source", "when"]
    list_filter = ["operation", "source", "created_at", "agent"]
    list_select_related = ["agent", "created_by"]
    ordering = ["-id"]

    @admin.display(description=_("by"), ordering="created_by")
    def by(self, row: MemoryRevision) -> str:
        return visible(str(row.created_by or ""))

    @admin.display(description=_("when"), ordering="created_at")
    def when(self, row: MemoryRevision) -> Any:
        return row.created_at

    def page_context(self, request: HttpRequest, row: MemoryRevision) -> dict[str, Any]:
        earlier = MemoryRevision.objects.filter(agent=row.agent_id, path=row.path)
        before = earlier.filter(number=row.number - 1).values_list("content", flat=True).first()
        latest = earlier.order_by("-number").values_list("number", flat=True)[0]
        return {
            "title": gettext("%(path)s, revision %(number)s")
            % {"path": row.path, "number": row.number},
            "revision": row,
            "agent_name": visible(row.agent.name),
            "by": self.by(row),
            "reason": shown(row.reason),
            "review": purged_review(row.path, row.operation)
            if row.purged_at
            else memory_edit_review(
                row.path, row.operation, before, row.content, scan(row.content or "")
            ),
            "is_latest": row.number == latest,
            "may_restore": row.purged_at is None and may_change_memory(person(request), row.agent),
            "approval": _approval_of(request, row.edit_request_id),
        }

    def act_on_row(self, request: HttpRequest, row: MemoryRevision) -> HttpResponse:
        """Restore the revision. `restore_revision` checks the permission."""
        if "restore" not in request.POST:
            raise PermissionDenied
        try:
            number = restore_revision(
                row.agent, row.path, row.number, by=person(request), source="admin"
            )
        except ServiceError as error:
            self.report(request, visible(error.message), failed=True)
            return HttpResponseRedirect(request.path)
        self.log_change(request, row, f"Restored as revision {number}.")
        text = gettext("%(path)s is restored, as revision %(number)s.")
        self.report(request, text % {"path": row.path, "number": number})
        result = MemoryRevision.objects.get(agent=row.agent_id, path=row.path, number=number)
        return HttpResponseRedirect(
            reverse(f"{self.admin_site.name}:memory_memoryrevision_change", args=[result.pk])
        )


@admin.register(MemoryEditRequest)
class MemoryEditRequestAdmin(MemoryAdmin):
    """Show agents' edit requests with the state of their approval requests."""

    page_template = "admin/memory/request.html"
    list_display = ["path", "operation", "shown_agent", "state", "created_at"]
    list_filter = ["operation", "approval__status", "created_at", "agent"]
    list_select_related = ["agent", "approval"]
    ordering = ["-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryEditRequest]:
        # Show a pending request only to people who may see its approval request, as in the queue.
        rows = super().get_queryset(request)
        if request.user.has_perm(VIEW_ALL):
            return rows
        return rows.filter(approval__in=approvals_for(person(request)).values("pk"))

    @admin.display(description=_("status"), ordering="approval__status")
    def state(self, row: Any) -> SafeString | str:
        approval = _asked(row)
        return tag(approval.status, approval.get_status_display()) if approval else "–"

    def page_context(self, request: HttpRequest, row: MemoryEditRequest) -> dict[str, Any]:
        approval = _asked(row)
        sources = row.provenance.get("sources", [])
        return {
            "title": f"{row.get_operation_display().capitalize()} {row.path}",
            "edit": row,
            "agent_name": visible(row.agent.name),
            "state": self.state(row),
            "approval": _approval_of(request, row.pk),
            "reason": shown(row.reason),
            "review": review_of_request(approval) if approval else None,
            "sources": [
                {name: visible(str(source.get(name, ""))) for name in ("step", "tool", "source")}
                for source in sources
            ],
        }


def _asked(row: MemoryEditRequest) -> ApprovalRequest | None:
    return getattr(row, "approval", None)


def _approval_of(request: HttpRequest, edit_id: int | None) -> str | None:
    """Return the id of the approval request of an edit, if this person may open it."""
    found = approvals_for(person(request)).filter(memory_edit=edit_id, memory_edit__isnull=False)
    return found.values_list("pk", flat=True).first()
