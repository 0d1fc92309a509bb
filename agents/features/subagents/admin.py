"""The subagents of an agent, saved with it as one version."""

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.own_rows import OwnRowsFormSet, OwnRowsInline
from agents.doors.agent_form.checks import at_its_field
from agents.doors.agent_form.fields import checked_tools
from agents.doors.agent_form.lines import LinesField
from agents.doors.agent_form.texts import LongText
from agents.features.subagents.models import Subagent
from agents.features.subagents.relations import subagent_specs
from agents.services.agent_definitions.script_files import check_script
from agents.services.errors import InvalidRequest


class SubagentForm(forms.ModelForm):
    """A subagent. Other options, such as sandbox, network and approvals, come from its agent."""

    tools = LinesField(
        is_optional=True,
        label=_("Tools"),
        help_text=_("One name on each line. Empty: the tools of the agent. []: no tools."),
    )
    skills = LinesField(
        label=_("Skills"),
        help_text=_(
            "One name on each line: its only skills, loaded from the start. Empty: the skills of "
            "the agent."
        ),
    )

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
        field_classes = {"system_prompt": LongText}
        widgets = {
            "description": forms.TextInput(attrs={"class": "vLargeTextField"}),
            "system_prompt": forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField"}),
        }

    def clean_tools(self) -> list[str] | None:
        return checked_tools(self.cleaned_data["tools"])

    def clean_skills(self) -> list[str]:
        skills = self.cleaned_data["skills"]
        if not isinstance(skills, list) or not all(isinstance(name, str) for name in skills):
            raise ValidationError(
                gettext('Expected a list of names of skills, for example ["data-query"].')
            )
        return skills

    def _post_clean(self) -> None:
        """Check whether a run could use the completed subagent."""
        super()._post_clean()  # type: ignore[misc]  # the stubs lack it
        if self.errors:
            return
        try:
            subagent_specs([self.instance])
            if "model" in self.changed_data:
                check_script(self.instance.model)
        except InvalidRequest as error:
            message = error.message.removeprefix("subagents: ")
            field, reason = at_its_field(message.removeprefix(f"{self.instance.name}: "))
            self.add_error(field if field in self.fields else "name", reason)


class SubagentFormSet(OwnRowsFormSet):
    """The subagents of an agent."""

    relation = "subagents"

    def clean(self) -> None:
        super().clean()
        if any(self.errors):
            return
        try:
            subagent_specs(self.kept())
        except InvalidRequest as error:
            raise ValidationError(error.message) from None


class SubagentInline(OwnRowsInline):
    """Subagents in the agent's form."""

    model = Subagent
    form = SubagentForm
    formset = SubagentFormSet


AGENT_INLINES = [SubagentInline]
