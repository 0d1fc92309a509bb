"""The rehearsal of an unsaved policy on the past calls of an agent."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from agents.doors.agent_form.labels import label_of
from agents.doors.agent_form.rows import MapField, RowsField
from agents.hidden_text import visible
from agents.middleware.rehearsal import MAX_DAYS, Rehearsal, rehearse, with_policy
from agents.models import Agent, Run
from agents.selectors.visible import runs_for
from agents.services.errors import InvalidRequest
from agents.spec import InterruptRule, PolicyRule

POLICY_FIELDS = ("approval_rules", "interrupt_on")
MAX_TEXT = 200_000


class RehearsalForm(forms.Form):
    """The unsaved policy fields of the agent's form."""

    rehearsal_days = forms.IntegerField(min_value=1, max_value=MAX_DAYS)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Created for each request, in the language of the page.
        rules = RowsField(PolicyRule, noun=gettext("rule"), max_length=MAX_TEXT)
        terms = MapField(InterruptRule, max_length=MAX_TEXT)
        for name, field in zip(POLICY_FIELDS, (rules, terms), strict=True):
            field.label = label_of(name)
        policy = dict(zip(POLICY_FIELDS, (rules, terms), strict=True))
        self.fields = {**policy, **self.fields}

    def entered(self, name: str, saved: Any) -> Any:
        """Return the submitted text of a field, or the saved value if it was not submitted."""
        widget = self.fields[name].widget
        if widget.value_omitted_from_data(self.data, self.files, name):
            return saved
        return widget.value_from_datadict(self.data, self.files, name)

    def policy(self) -> dict[str, Any]:
        """Return the submitted fields. Fields that the user cannot change are missing."""
        return {
            name: self.cleaned_data[name]
            for name in POLICY_FIELDS
            if not self.fields[name].widget.value_omitted_from_data(self.data, self.files, name)
        }


def rehearsal_page(page: ModelAdmin[Agent], request: HttpRequest, object_id: str) -> HttpResponse:
    """Show the result for the values in the agent's form. Changes nothing."""
    agent = page.get_object(request, object_id)
    if agent is None:
        raise Http404("There is no such agent.")
    if not page.has_change_permission(request, agent):
        raise PermissionDenied
    data = request.POST if request.method == "POST" else {"rehearsal_days": "7"}
    form = RehearsalForm(data)
    found, problem = _found(agent, form, request)
    texts = {name: form.entered(name, getattr(agent, name)) for name in POLICY_FIELDS}
    shown = RehearsalForm(initial=texts)
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "media": page.media + shown.media,
        "title": gettext("Rehearse the policy of %(agent)s") % {"agent": visible(agent.name)},
        "agent": agent,
        "problem": visible(problem),
        "rehearsal": found,
        "tools": [(visible(tool), counts) for tool, counts in found.tools.items()] if found else [],
        "examples": _shown(found) if found else [],
        "days": data.get("rehearsal_days", ""),
        "max_days": MAX_DAYS,
        "texts": texts,
        "policy": [shown[name] for name in POLICY_FIELDS],
        "can_see_runs": page.admin_site.get_model_admin(Run).has_view_permission(request),
    }
    request.current_app = page.admin_site.name
    return TemplateResponse(request, "admin/agents/agent/rehearsal.html", context)


def _found(agent: Agent, form: RehearsalForm, request: HttpRequest) -> tuple[Rehearsal | None, str]:
    """Return the result, or None and the problem."""
    if not form.is_valid():
        name, messages = next(iter(form.errors.items()))
        return None, f"{name}: {messages[0]}"
    try:
        spec = with_policy(agent, form.policy())
        days = form.cleaned_data["rehearsal_days"]
        return rehearse(agent, spec, days=days, readable=runs_for(request.user)), ""
    except ValidationError as error:
        return None, error.messages[0]
    except InvalidRequest as error:
        return None, error.message


def _shown(found: Rehearsal) -> list[dict[str, str]]:
    """Return the examples as text that is safe to display."""
    return [
        {
            "run": example.run_id,
            "tool": visible(example.tool),
            "input": visible(example.input),
            "status": example.status,
            "before": example.before,
            "after": example.after,
            "source": visible(example.source),
        }
        for example in found.examples
    ]
