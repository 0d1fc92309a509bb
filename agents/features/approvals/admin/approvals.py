"""The admin of the approval queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.db.models import Case, QuerySet, When
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import in_english, person, tag
from agents.doors.admin.json_input import parse_json
from agents.features.approvals.admin import approval_page
from agents.features.approvals.admin.approval_several import DecideSeveral, with_rows
from agents.features.approvals.pending_responses import pending_responses
from agents.hidden_text import unescaped_text, visible
from agents.kernel.proposals import proposal_kind, run_request_kind, run_request_kinds
from agents.middleware.decisions import decide
from agents.models import Agent, ApprovalRequest, Run
from agents.review.json_text import TOO_LONG_TO_EDIT, one_line_of
from agents.selectors.queue import INPUTS, take_inputs, with_short_inputs
from agents.selectors.visible import (
    APPROVE,
    VIEW_ALL,
    approvals_for,
    approved_agents,
    is_approver,
    unless_private,
)
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import ServiceError
from agents.states import ApprovalStatus, Decision, IllegalTransition


class AgentFilter(admin.SimpleListFilter):
    """A filter by agent. It lists only agents with requests that the user can see."""

    title = _("agent")
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        asking = model_admin.get_queryset(request).order_by().values("run__agent_version__agent")
        agents = Agent.objects.filter(pk__in=asking).order_by("name", "id")
        return [(agent.slug, visible(agent.name)) for agent in agents]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]
    ) -> QuerySet[ApprovalRequest]:
        slug = self.value()
        return queryset if slug is None else queryset.filter(run__agent_version__agent__slug=slug)


class ExpiryFilter(admin.SimpleListFilter):
    """A filter of pending requests by expiry."""

    title = _("expiring")
    parameter_name = "expiring"
    _WITHIN = {"hour": timedelta(hours=1), "day": timedelta(days=1)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("hour", gettext("within an hour")),
            ("day", gettext("within a day")),
            ("ever", gettext("at some time")),
            ("never", gettext("never")),
        ]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]
    ) -> QuerySet[ApprovalRequest]:
        value = self.value()
        if value is None:
            return queryset
        waiting = queryset.filter(status=ApprovalStatus.PENDING)
        if value in self._WITHIN:
            return waiting.filter(expires_at__lte=timezone.now() + self._WITHIN[value])
        return waiting.filter(expires_at__isnull=value == "never")


PREVIEW_CHARACTERS = 120
SHORT_INPUT = 20_000
"""In characters. For a longer input the list shows the start of its stored JSON."""


class _WithoutLongInputs(ChangeList):
    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[ApprovalRequest]:
        found: QuerySet[ApprovalRequest] = super().get_queryset(request, exclude_parameters)
        short = with_short_inputs(found, SHORT_INPUT).defer(*INPUTS, "preview")
        return short.annotate(input_start=Left("input", PREVIEW_CHARACTERS + 1))


@admin.register(ApprovalRequest)
class ApprovalRequestAdmin(DecideSeveral):
    """The admin of requests. Decisions go through `decide`, bound to the digest on the page.

    A decision requires the permission to approve, for all agents or for the request's agent, or the
    permission that the kind of a request about a run defines. Owners decide requests of their runs
    on the pages outside the admin.
    """

    page_template = "admin/agents/approvalrequest/decide.html"
    list_display = [
        "asked",
        "beginning",
        "agent",
        "owner",
        "state",
        "approvals",
        "decided",
        "age",
        "expires",
    ]
    list_filter = [
        "status",
        "kind",
        ExpiryFilter,
        "decision",
        AgentFilter,
        "created_at",
        "tool",
    ]
    list_select_related = ["run__agent_version__agent", "run__owner", "decided_by"]
    search_fields = ["^id", "^run__id", "tool", f"run__owner__{get_user_model().USERNAME_FIELD}"]
    search_help_text = _("The beginning of a request's or a run's id, a tool, or an owner.")
    ordering = [
        Case(
            When(status=ApprovalStatus.PENDING, then=0),
            default=1,
            output_field=models.IntegerField(),
        ),
        "-id",
    ]

    class Media:
        css = {"all": ["agents/web/review.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApprovalRequest]:
        if request.user.has_perm(VIEW_ALL):
            return ApprovalRequest.objects.filter(unless_private(request.user))
        return approvals_for(request.user)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Return whether the user can decide any requests here."""
        return (
            request.user.has_perm(APPROVE)
            or any(kind.may_decide(request.user) for kind in run_request_kinds().values())
            or approved_agents(request.user).exists()
        )

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Return whether the user can view or decide requests."""
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) or self.has_decide_permission(request)

    @admin.display(description=_("tool"), ordering="tool")
    def asked(self, request: ApprovalRequest) -> str:
        return visible(request.tool)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return _WithoutLongInputs

    @admin.display(description=_("input"))
    def beginning(self, request: ApprovalRequest) -> str:
        if "input" in take_inputs(request):
            text = visible(one_line_of(request.input, PREVIEW_CHARACTERS))
        else:
            text = visible(request.input_start)  # type: ignore[attr-defined]  # annotated
        return text if len(text) <= PREVIEW_CHARACTERS else f"{text[:PREVIEW_CHARACTERS]}…"

    @admin.display(description=_("agent"), ordering="run__agent_version__agent__slug")
    def agent(self, request: ApprovalRequest) -> str:
        return visible(request.run.agent_version.agent.slug)

    @admin.display(description=_("owner"), ordering="run__owner")
    def owner(self, request: ApprovalRequest) -> str:
        return str(request.run.owner)

    @admin.display(description=_("status"), ordering="status")
    def state(self, request: ApprovalRequest) -> SafeString:
        return tag(request.status, request.get_status_display())

    @admin.display(description=_("approvals"), ordering="approvals_needed")
    def approvals(self, request: ApprovalRequest) -> str:
        return approval_page.approvals(request)

    @admin.display(description=_("decision"), ordering="decision")
    def decided(self, request: ApprovalRequest) -> str:
        decision = request.get_decision_display() if request.decision else ""
        if not decision or not request.decided_by:
            return decision
        values = {"decision": decision, "by": request.decided_by}
        return gettext("%(decision)s by %(by)s") % values

    @admin.display(description=_("age"), ordering="created_at")
    def age(self, request: ApprovalRequest) -> str:
        return approval_page.age(request)

    @admin.display(description=_("expires"), ordering="expires_at")
    def expires(self, request: ApprovalRequest) -> str:
        return approval_page.expires(request)

    # Page of one request

    def page_context(self, request: HttpRequest, row: ApprovalRequest) -> dict[str, Any]:
        approval = with_rows().get(pk=row.pk)
        kind = proposal_kind(approval)
        may_decide = self.may_decide(request, approval)
        return {
            **approval_page.shown_request(approval),
            "title": gettext("Approval: %(tool)s") % {"tool": visible(approval.tool)},
            "state": tag(approval.status, approval.get_status_display()),
            "trail": approval_page.trail(approval),
            "edited": approval_page.edited(approval),
            "answers": pending_responses(approval, person(request)) if may_decide else None,
            "text_help": kind.text_help if kind is not None else "",
            "is_pending": approval.status == ApprovalStatus.PENDING,
            "can_see_run": self.admin_site.get_model_admin(Run).has_view_permission(request),
            "typed_input": approval_page.text_to_edit(approval),
            "too_long": TOO_LONG_TO_EDIT,
            "typed_reason": "",
            "open_decision": "",
            "form_errors": {},
        }

    def act_on_row(self, request: HttpRequest, row: Any) -> HttpResponse | dict[str, Any]:
        """Decide the request. If the form is invalid, show it again with the submitted values."""
        if not self.may_decide(request, row):
            raise PermissionDenied
        form = DecisionForm(request.POST, row)
        if not form.is_valid():
            return _typed(request, row, form.errors)
        refusal = self.decide_one(request, row.pk, form.answer())
        if refusal and form.cleaned_data["decision"] == Decision.EDIT:
            # Keep the submitted text after a refusal.
            return _typed(request, row, {})
        return HttpResponseRedirect(request.path)

    def may_decide(self, request: HttpRequest, approval: ApprovalRequest) -> bool:
        kind = run_request_kind(approval)
        if kind is not None and kind.may_decide(request.user, approval):
            return True
        return is_approver(request.user, approval.run.agent_version.agent_id)

    def decide_one(self, request: HttpRequest, request_id: str, answer: DecisionRequest) -> bool:
        """Decide one request and add a message with the result. Return whether it was refused."""
        values = {"id": request_id}
        try:
            decided = decide(request_id, answer, by=person(request))
        except (ServiceError, IllegalTransition) as error:
            text = gettext("Request %(id)s: not decided. %(problem)s")
            self.report(request, text % {**values, "problem": visible(str(error))}, failed=True)
            return True
        outcome = Decision(answer.decision).label
        waits = decided.status == ApprovalStatus.PENDING
        logged = "Approved first." if waits else f"Decided: {in_english(outcome)}."
        self.log_change(request, decided, logged)
        values |= {"tool": visible(decided.tool), "outcome": str(outcome)}
        text = gettext("Request %(id)s (%(tool)s): decided: %(outcome)s.")
        if waits:
            values["approvals"] = approval_page.approvals(decided)
            text = gettext(
                "Request %(id)s (%(tool)s): approved first (%(approvals)s); it waits for somebody "
                "else, too."
            )
        self.report(request, text % values)
        return False


def _typed(request: HttpRequest, row: ApprovalRequest, errors: Any) -> dict[str, Any]:
    """Return the context of the page with the submitted values."""
    return {
        "typed_input": request.POST.get("input") or approval_page.text_to_edit(row),
        "typed_reason": request.POST.get("reason", ""),
        "open_decision": request.POST.get("decision", ""),
        "form_errors": errors,
    }


class DecisionForm(forms.Form):
    """A decision, with the digest of the displayed request.

    `input` is JSON, or the text of a proposal.
    """

    decision = forms.ChoiceField(choices=Decision.choices)
    digest = forms.CharField()
    input = forms.CharField(required=False, strip=False)
    reason = forms.CharField(required=False, max_length=10_000)

    def __init__(self, data: QueryDict, asked: ApprovalRequest) -> None:
        super().__init__(data)
        self._is_text = proposal_kind(asked) is not None

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        edited = None
        if data.get("decision") == Decision.EDIT:
            typed = data.get("input", "")
            edited = self._text(typed) if self._is_text else self._json(typed)
        return {**data, "input": edited}

    def _text(self, typed: str) -> dict[str, Any]:
        # Browsers send all line breaks as CR LF.
        return {"content": unescaped_text(typed.replace("\r\n", "\n"))}

    def _json(self, typed: str) -> Any:
        try:
            edited = parse_json(typed)
        except ValidationError as error:
            self.add_error("input", error)
            return None
        if not isinstance(edited, dict):
            text = gettext('The input must be a JSON object, as {"path": "notes.md"}.')
            self.add_error("input", text)
        return edited

    def answer(self) -> DecisionRequest:
        data = self.cleaned_data
        return DecisionRequest(data["decision"], data["digest"], data["input"], data["reason"])
