"""The approval queue: look at exactly what is asked, and answer it."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.db.models import Case, QuerySet, When
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from agents.admin.journal import JournalAdmin, person, tag
from agents.admin.json_input import parse_json
from agents.admin.numbers import span
from agents.admin.text import shown, shown_input, typed
from agents.hidden_text import visible
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, Run
from agents.selectors.visible import APPROVE, VIEW_ALL, approvals_for
from agents.services.agents import SCRIPTED
from agents.services.approvals import DecisionRequest
from agents.services.errors import ServiceError
from agents.states import ApprovalStatus, Decision, IllegalTransition

SEVERAL_AT_ONCE = 100
"""So many requests at most are shown together to be answered together."""
PREVIEW_CHARACTERS = 120


class DecisionForm(forms.Form):
    """A person's answer, with the digest of what the page showed."""

    decision = forms.ChoiceField(choices=Decision.choices)
    digest = forms.CharField()
    input = forms.CharField(required=False, strip=False)
    reason = forms.CharField(required=False, max_length=10_000)

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        edited = None
        if data.get("decision") == Decision.EDIT:
            try:
                edited = parse_json(data.get("input", ""))
            except ValidationError as error:
                self.add_error("input", error)
            else:
                if not isinstance(edited, dict):
                    self.add_error(
                        "input", 'The input must be a JSON object, as {"path": "notes.md"}.'
                    )
        return {**data, "input": edited}

    def answer(self) -> DecisionRequest:
        data = self.cleaned_data
        return DecisionRequest(data["decision"], data["digest"], data["input"], data["reason"])


@admin.register(ApprovalRequest)
class ApprovalRequestAdmin(JournalAdmin):
    """Answers go through `decide`, bound to the digest that was on the page."""

    page_template = "admin/agents/approvalrequest/decide.html"
    list_display = ["asked", "preview", "agent", "owner", "state", "decided", "age"]
    list_filter = ["status", "kind", "decision", "created_at", "tool", "run__agent_version__agent"]
    list_select_related = ["run__agent_version__agent", "run__owner", "decided_by"]
    search_fields = ["^id", "^run__id", "tool", f"run__owner__{get_user_model().USERNAME_FIELD}"]
    search_help_text = "The beginning of a request's or a run's id, a tool, or an owner."
    ordering = [
        Case(
            When(status=ApprovalStatus.PENDING, then=0),
            default=1,
            output_field=models.IntegerField(),
        ),
        "-id",
    ]
    actions = ["approve_selected", "reject_selected"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApprovalRequest]:
        if request.user.has_perm(VIEW_ALL):
            return ApprovalRequest.objects.all()
        return approvals_for(request.user)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(APPROVE))

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Who may decide may look."""
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    @admin.display(description="tool", ordering="tool")
    def asked(self, request: ApprovalRequest) -> str:
        return visible(request.tool)

    @admin.display(description="input")
    def preview(self, request: ApprovalRequest) -> str:
        text = visible(json.dumps(request.input, ensure_ascii=False))
        return text if len(text) <= PREVIEW_CHARACTERS else f"{text[:PREVIEW_CHARACTERS]}…"

    @admin.display(ordering="run__agent_version__agent__slug")
    def agent(self, request: ApprovalRequest) -> str:
        return visible(request.run.agent_version.agent.slug)

    @admin.display(ordering="run__owner")
    def owner(self, request: ApprovalRequest) -> str:
        return str(request.run.owner)

    @admin.display(description="status", ordering="status")
    def state(self, request: ApprovalRequest) -> SafeString:
        return tag(request.status, request.get_status_display())

    @admin.display(description="decision", ordering="decision")
    def decided(self, request: ApprovalRequest) -> str:
        by = f" by {request.decided_by}" if request.decided_by else ""
        return f"{request.get_decision_display()}{by}" if request.decision else ""

    @admin.display(ordering="created_at")
    def age(self, request: ApprovalRequest) -> str:
        return _age(request)

    # One request on its page

    def page_context(self, request: HttpRequest, row: ApprovalRequest) -> dict[str, Any]:
        asked = self._with_rows().get(pk=row.pk)
        is_open = asked.status == ApprovalStatus.PENDING
        return {
            **_shown_request(asked),
            "title": f"Approval: {visible(asked.tool)}",
            "state": tag(asked.status, asked.get_status_display()),
            "edited": None
            if asked.edited_input is None
            else shown_input(asked.edited_input, limit=None),
            "reason": shown(asked.reason),
            "can_decide": is_open and self.has_decide_permission(request),
            "is_pending": is_open,
            "can_see_run": self.admin_site.get_model_admin(Run).has_view_permission(request),
            "typed_input": typed(asked.input),
            "typed_reason": "",
            "open_decision": "",
            "form_errors": {},
        }

    def act_on_row(self, request: HttpRequest, row: Any) -> HttpResponse | dict[str, Any]:
        """Decide it. What does not fit the form comes back with what was typed."""
        if not self.has_decide_permission(request):
            raise PermissionDenied
        form = DecisionForm(request.POST)
        if not form.is_valid():
            return {
                "typed_input": request.POST.get("input") or typed(row.input),
                "typed_reason": request.POST.get("reason", ""),
                "open_decision": request.POST.get("decision", ""),
                "form_errors": form.errors,
            }
        self._decide(request, row.pk, form.answer())
        return HttpResponseRedirect(request.path)

    def _decide(self, request: HttpRequest, request_id: str, answer: DecisionRequest) -> None:
        """Decide one request and say what came of it; a refusal is a message."""
        label = f"Request {request_id}"
        try:
            decided = decide(request_id, answer, by=person(request))
        except (ServiceError, IllegalTransition) as error:
            self.report(request, f"{label}: not decided. {error}", failed=True)
            return
        outcome = Decision(answer.decision).label
        self.log_change(request, decided, f"Decided: {outcome}.")
        self.report(request, f"{label} ({visible(decided.tool)}): decided: {outcome}.")

    # Several of the list

    @admin.action(description="Approve the selected requests…", permissions=["decide"])
    def approve_selected(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]
    ) -> HttpResponse | None:
        return self._decide_several(request, queryset, Decision.APPROVE)

    @admin.action(description="Reject the selected requests…", permissions=["decide"])
    def reject_selected(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]
    ) -> HttpResponse | None:
        return self._decide_several(request, queryset, Decision.REJECT)

    def _decide_several(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest], decision: Decision
    ) -> HttpResponse | None:
        """First a page that shows each request in full, then, from that page, the decisions.

        The list itself shows only the beginning of an input, so nothing is decided from it. Each
        decision is bound to the digest that the page carried for its request.
        """
        if "confirmed" in request.POST:
            reason = request.POST.get("reason", "").strip()
            for request_id in request.POST.getlist(ACTION_CHECKBOX_NAME)[:SEVERAL_AT_ONCE]:
                digest = request.POST.get(f"digest_{request_id}", "")
                self._decide(request, request_id, DecisionRequest(decision, digest, reason=reason))
            return None
        ids = self.chosen(request, queryset).values("pk")
        several = list(self._with_rows().filter(pk__in=ids)[: SEVERAL_AT_ONCE + 1])
        if len(several) > SEVERAL_AT_ONCE:
            self.report(request, f"Select {SEVERAL_AT_ONCE} requests at most.", failed=True)
            return None
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": f"{decision.label.capitalize()} these requests?",
            "is_rejection": decision == Decision.REJECT,
            "action": f"{decision}_selected",
            "decision": decision,
            "action_checkbox_name": ACTION_CHECKBOX_NAME,
            "requests": [
                _shown_request(asked) for asked in several if asked.status == ApprovalStatus.PENDING
            ],
            "past": [asked for asked in several if asked.status != ApprovalStatus.PENDING],
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request, "admin/agents/approvalrequest/decide_several.html", context
        )

    def _with_rows(self) -> QuerySet[ApprovalRequest]:
        return ApprovalRequest.objects.select_related(
            "run__agent_version__agent", "run__owner", "run__thread", "tool_call", "decided_by"
        ).order_by("id")


def _age(request: ApprovalRequest) -> str:
    return span(timezone.now() - request.created_at)


def _shown_request(asked: ApprovalRequest) -> dict[str, Any]:
    """A request in full: nothing of what is decided is cut or folded."""
    return {
        "asked": asked,
        "tool": visible(asked.tool),
        "input": shown_input(asked.input, limit=None),
        "prompt": shown(asked.prompt, limit=None),
        "age": _age(asked),
        "is_scripted": asked.run.agent_version.spec.get("provider") == SCRIPTED,
    }
