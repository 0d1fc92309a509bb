"""The admin of grants: who created them, how often they were used, and revoking."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import SealedAdmin, person, tag
from agents.hidden_text import visible
from agents.models import ApprovalGrant
from agents.selectors.visible import APPROVE, VIEW_ALL, grants_for
from agents.services.approvals.grants import grant_state, revoke_grant
from agents.services.errors import ServiceError

_COLOURS = {
    "good": "completed",
    "revoked": "cancelled",
    "expired": "expired",
    "used_up": "expired",
    "giver_gone": "cancelled",
}
_STATES = {
    "good": _("good"),
    "revoked": _("revoked"),
    "expired": _("expired"),
    "used_up": _("used up"),
    "giver_gone": _("giver gone"),
}


@admin.register(ApprovalGrant)
class ApprovalGrantAdmin(SealedAdmin):
    """The admin of grants. A grant can only be revoked, so that the record remains."""

    list_display = ["calls", "agent", "whose", "state", "used", "created_by", "expires_at"]
    list_filter = [
        ("revoked_at", admin.EmptyFieldListFilter),
        "expires_at",
        "created_at",
        "tool",
        "agent",
    ]
    list_select_related = ["agent", "owner", "created_by"]
    search_fields = [
        "^id",
        "tool",
        "agent__slug",
        f"owner__{get_user_model().USERNAME_FIELD}",
        f"created_by__{get_user_model().USERNAME_FIELD}",
    ]
    search_help_text = _("The beginning of an id, a tool, an agent, or a user.")
    ordering = ["-id"]
    actions = ["revoke_selected"]
    fields: ClassVar[list[Any]] = [
        "calls",
        "agent",
        "whose",
        "only_thread",
        "shown_reason",
        "state",
        "used",
        "last_used_at",
        "expires_at",
        "created_by",
        "created_at",
        "given_with",
        "revoked_by",
        "revoked_at",
    ]
    readonly_fields: ClassVar[list[Any]] = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApprovalGrant]:
        if request.user.has_perm(VIEW_ALL):
            return ApprovalGrant.objects.all()
        return grants_for(request.user)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user can view grants, or decide all requests."""
        return super().has_view_permission(request, obj) or bool(request.user.has_perm(APPROVE))

    @admin.display(description=_("calls"), ordering="tool")
    def calls(self, grant: ApprovalGrant) -> str:
        when = (
            json.dumps(grant.condition, ensure_ascii=False)
            if grant.condition
            else gettext("every call")
        )
        return visible(f"{grant.tool}: {when}")

    @admin.display(description=_("in the runs of"), ordering="owner")
    def whose(self, grant: ApprovalGrant) -> str:
        runs = gettext("everybody") if grant.owner is None else str(grant.owner)
        return gettext("%(who)s, in one thread") % {"who": runs} if grant.thread_id else runs

    @admin.display(description=_("status"))
    def state(self, grant: ApprovalGrant) -> SafeString:
        state = grant_state(grant)
        return tag(_COLOURS[state], _STATES[state])

    @admin.display(description=_("uses"), ordering="uses")
    def used(self, grant: ApprovalGrant) -> str:
        return gettext("%(count)s of %(all)s") % {"count": grant.uses, "all": grant.max_uses}

    @admin.display(description=_("reason"))
    def shown_reason(self, grant: ApprovalGrant) -> str:
        return visible(grant.reason)

    @admin.display(description=_("thread"))
    def only_thread(self, grant: ApprovalGrant) -> str:
        return grant.thread_id or gettext("all")

    @admin.display(description=_("given with the request"))
    def given_with(self, grant: ApprovalGrant) -> str:
        return grant.request_id or "-"

    @admin.action(description=_("Revoke the selected grants"))
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApprovalGrant]) -> None:
        for grant in self.chosen(request, queryset):
            try:
                revoke_grant(grant.pk, by=person(request))
            except ServiceError as error:
                text = gettext("%(name)s: not revoked. %(problem)s")
                self.report(request, text % {"name": grant.pk, "problem": error}, failed=True)
                continue
            self.log_change(request, grant, "Revoked.")
            name = f"{grant.pk} ({visible(grant.tool)})"
            self.report(request, gettext("%(name)s: revoked.") % {"name": name})
