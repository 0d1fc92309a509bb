"""The subagents of an agent, saved with it as one version."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest

from agents.admin.approval_fields import at_its_field
from agents.admin.option_fields import checked_tools
from agents.doors.admin.json_input import JsonText
from agents.models import Agent, Subagent
from agents.services.agent_definitions.script_files import check_script
from agents.services.agent_definitions.subagents import subagent_specs
from agents.services.errors import InvalidRequest


class SubagentForm(forms.ModelForm):
    """A subagent. Other options, such as sandbox, network and approvals, come from its agent."""

    tools = JsonText(empty=None, help_text=Subagent._meta.get_field("tools").help_text)
    skills = JsonText(empty=[], help_text=Subagent._meta.get_field("skills").help_text)

    class Meta:
        model = Subagent
        fields = [
            "name",
            "description",
            "system_prompt",
            "provider",
            "model",
            "tools",
            "skills",
            "read_only",
            "max_turns",
            "max_tokens",
            "max_cost",
            "max_seconds",
        ]
        widgets = {
            "description": forms.TextInput(attrs={"class": "vLargeTextField"}),
            "system_prompt": forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField"}),
        }

    def clean_tools(self) -> list[str] | None:
        return checked_tools(self.cleaned_data["tools"])

    def clean_skills(self) -> list[str]:
        skills = self.cleaned_data["skills"]
        if not isinstance(skills, list) or not all(isinstance(name, str) for name in skills):
            raise ValidationError('Give a list of names of skills, as ["data-query"].')
        return skills

    def _post_clean(self) -> None:
        """Check whether a run could use the completed subagent."""
        super()._post_clean()  # type: ignore[misc]  # the stubs lack it
        if self.errors:
            return
        try:
            subagent_specs(Agent(), [self.instance])
            if "model" in self.changed_data:
                check_script(self.instance.model)
        except InvalidRequest as error:
            message = error.message.removeprefix("subagents: ")
            field, reason = at_its_field(message.removeprefix(f"{self.instance.name}: "))
            self.add_error(field if field in self.fields else "name", reason)


class SubagentFormSet(BaseInlineFormSet):
    """Subagents of an agent. Does not save: `save_agent` stores the rows in `kept`."""

    def kept(self) -> list[Subagent]:
        """Return the rows that the agent keeps."""
        gone = self.deleted_forms
        return [
            form.instance
            for form in self.forms
            if form not in gone and (form in self.initial_forms or form.has_changed())
        ]

    def clean(self) -> None:
        super().clean()
        if any(self.errors):
            return
        try:
            subagent_specs(Agent(), self.kept())
        except InvalidRequest as error:
            raise ValidationError(error.message) from None


class SubagentInline(admin.StackedInline):
    """Subagents in the agent's form, for people who can change the agent."""

    model = Subagent
    form = SubagentForm
    formset = SubagentFormSet
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        needed = "agents.add_agent" if obj is None else "agents.change_agent"
        return bool(request.user.has_perm(needed))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_look = request.user.has_perm("agents.view_agent")
        return bool(may_look or self.has_add_permission(request, obj))


def rows_of(formsets: Any) -> list[Subagent] | None:
    """Return the subagents in the form. None if the user cannot edit them."""
    for formset in formsets:
        if isinstance(formset, SubagentFormSet):
            return formset.kept()
    return None


def copies_of(agent: Agent) -> list[Subagent]:
    """Return copies of the subagents, for another agent."""
    fields = [
        field.name for field in Subagent._meta.concrete_fields if field.name not in ("id", "agent")
    ]
    return [
        Subagent(**{name: getattr(row, name) for name in fields}) for row in agent.subagents.all()
    ]
