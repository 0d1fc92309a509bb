"""Decisions on several requests of the list together, each bound to its displayed content."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import JournalAdmin, person
from agents.features.approvals.admin import approval_page
from agents.features.approvals.pending_responses import pending_responses
from agents.hidden_text import visible
from agents.kernel.proposals import request_relations
from agents.models import ApprovalRequest
from agents.review.json_text import size_of
from agents.review.room import CHARACTERS
from agents.services.approvals.decisions import DecisionRequest
from agents.states import Decision

SEVERAL_AT_ONCE = 100
"""Maximum number of requests on one page."""

_TITLES = {
    Decision.APPROVE: _("Approve these requests?"),
    Decision.REJECT: _("Reject these requests?"),
}
_TOO_LONG = _("Too long for this page. Decide it on its own page.")


class DecideSeveral(JournalAdmin):
    """The list's actions: a page that shows the selected requests, and decisions from it."""

    actions = ["approve_selected", "reject_selected"]

    def may_decide(self, request: HttpRequest, approval: ApprovalRequest) -> bool:
        """Return whether the user can decide `approval` in the admin."""
        raise NotImplementedError

    def decide_one(self, request: HttpRequest, request_id: str, answer: DecisionRequest) -> bool:
        """Decide one request and add a message with the result. Return whether it was refused."""
        raise NotImplementedError

    @admin.action(description=_("Approve the selected requests…"), permissions=["decide"])
    def approve_selected(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]
    ) -> HttpResponse | None:
        return self._decide_several(request, queryset, Decision.APPROVE)

    @admin.action(description=_("Reject the selected requests…"), permissions=["decide"])
    def reject_selected(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]
    ) -> HttpResponse | None:
        return self._decide_several(request, queryset, Decision.REJECT)

    def _decide_several(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest], decision: Decision
    ) -> HttpResponse | None:
        """Show each request in full, then apply the decisions from that page.

        The list shows only the start of an input, so it does not allow decisions. Each decision is
        bound to the digest of its displayed request.
        """
        if "confirmed" in request.POST:
            self._decide_confirmed(request, decision)
            return None
        ids = self.chosen(request, queryset).values("pk")
        several = list(with_rows().filter(pk__in=ids)[: SEVERAL_AT_ONCE + 1])
        if len(several) > SEVERAL_AT_ONCE:
            text = gettext("Select %(most)s requests at most.") % {"most": SEVERAL_AT_ONCE}
            self.report(request, text, failed=True)
            return None
        open_ones, left_out = self._sorted_out(request, several, decision)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": str(_TITLES[decision]),
            "is_rejection": decision == Decision.REJECT,
            "action": f"{decision}_selected",
            "decision": decision,
            "action_checkbox_name": ACTION_CHECKBOX_NAME,
            "requests": [approval_page.shown_request(approval) for approval in open_ones],
            "left_out": left_out,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request, "admin/agents/approvalrequest/decide_several.html", context
        )

    def _decide_confirmed(self, request: HttpRequest, decision: Decision) -> None:
        reason = request.POST.get("reason", "").strip()
        ids = request.POST.getlist(ACTION_CHECKBOX_NAME)[:SEVERAL_AT_ONCE]
        rows = self.get_queryset(request).select_related("run__agent_version").in_bulk(ids)
        for request_id in ids:
            approval = rows.get(request_id)
            if approval is None or not self.may_decide(request, approval):
                text = gettext("Request %(id)s: not decided. It is not for you.")
                self.report(request, text % {"id": visible(request_id)}, failed=True)
                continue
            digest = request.POST.get(f"digest_{request_id}", "")
            self.decide_one(request, request_id, DecisionRequest(decision, digest, reason=reason))

    def _sorted_out(
        self, request: HttpRequest, several: list[ApprovalRequest], decision: Decision
    ) -> tuple[list[ApprovalRequest], list[tuple[ApprovalRequest, str]]]:
        """Return the requests that allow `decision`, and the other requests with reasons."""
        open_ones: list[ApprovalRequest] = []
        left_out: list[tuple[ApprovalRequest, str]] = []
        left = CHARACTERS
        for approval in several:
            if not self.may_decide(request, approval):
                left_out.append((approval, gettext("It is not for you to decide here.")))
                continue
            answers = pending_responses(approval, person(request))
            if decision in answers.offered:
                size = size_of(approval.input, CHARACTERS)
                if size > left:
                    left_out.append((approval, str(_TOO_LONG)))
                    continue
                open_ones.append(approval)
                left -= size
                continue
            refused = (reason for reason, which in answers.refused.items() if decision in which)
            one_cannot = gettext("One cannot %(decide)s it.") % {"decide": decision.label}
            reason = answers.closed or next(refused, one_cannot)
            left_out.append((approval, reason))
        return open_ones, left_out


def with_rows() -> QuerySet[ApprovalRequest]:
    """Return the requests with all relations that their pages show."""
    return ApprovalRequest.objects.select_related(
        "run__agent_version__agent",
        "run__owner",
        "run__thread",
        "tool_call",
        *request_relations(),
        "first_approver",
        "decided_by",
    ).order_by("id")
