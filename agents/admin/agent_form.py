"""The form of an agent: what is typed into its JSON fields, and errors where they belong."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.admin.approval_fields import (
    at_its_field,
    check_interrupt_on,
    check_rules,
    check_tool_name,
)
from agents.admin.guard_fields import GuardrailChoice
from agents.admin.option_fields import option_values, take_options
from agents.admin.relation_fields import RelationField
from agents.doors.admin.json_input import JsonText
from agents.kernel.integrations import integrations
from agents.models import Agent
from agents.providers.registry import PROVIDERS
from agents.services.agent_rights import RESERVED_SLUGS
from agents.services.agents import build_spec
from agents.services.errors import InvalidRequest
from agents.services.prompt_values import check_names
from agents.services.script_files import check_script
from agents.settings import DataSettings
from sandbox.toolbox_find import toolbox_names


class ToolboxChoice(forms.ChoiceField):
    """The toolboxes of this host, and the one that the agent has, wherever that may be."""

    default_error_messages = {
        "invalid_choice": "There is no toolbox “%(value)s” on this host. The operator builds it "
        "with: vel toolbox create NAME PACKAGE…",
    }

    def __init__(self, present: str) -> None:
        here = toolbox_names(DataSettings.now().toolboxes)
        choices = [("", "the system's Python"), *((name, name) for name in here)]
        if present and present not in here:
            choices.append((present, f"{present} (not on this host)"))
        help_text = Agent._meta.get_field("toolbox").help_text
        super().__init__(required=False, choices=choices, help_text=help_text)


class ProviderChoice(forms.ChoiceField):
    """The providers there are, and the one that the agent has, whatever that is."""

    def __init__(self, present: str) -> None:
        choices = [("", "the provider of the settings"), *((name, name) for name in PROVIDERS)]
        if present and present not in PROVIDERS:
            choices.append((present, f"{present} (not known here)"))
        help_text = Agent._meta.get_field("provider").help_text
        super().__init__(required=False, choices=choices, help_text=help_text)


def checked_tools(tools: object) -> list[str] | None:
    """`tools` as typed: a list of names, or None for all."""
    if tools is None:
        return None
    if not isinstance(tools, list):
        raise ValidationError('Give a list of tool names, as ["ls", "read_file"].')
    for name in tools:
        check_tool_name(name)
    twice = sorted({name for name in tools if tools.count(name) > 1})
    if twice:
        raise ValidationError(f"Named more than once: {', '.join(twice)}.")
    return tools


class AgentForm(forms.ModelForm):
    """Checks what `save_agent` would refuse while the form can still say at which field."""

    tools = JsonText(empty=None, help_text=Agent._meta.get_field("tools").help_text)
    interrupt_on = JsonText(empty={}, help_text=Agent._meta.get_field("interrupt_on").help_text)
    approval_rules = JsonText(
        empty=[],
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false", "class": "vel-json"}),
        help_text=Agent._meta.get_field("approval_rules").help_text,
    )
    output_schema = JsonText(
        empty=None,
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false", "class": "vel-json"}),
        help_text=Agent._meta.get_field("output_schema").help_text,
    )
    integrations = forms.MultipleChoiceField(
        required=False,
        choices=lambda: [(each.name, each.label) for each in integrations()],
        widget=forms.CheckboxSelectMultiple,
        help_text=Agent._meta.get_field("integrations").help_text,
    )
    mcp_servers = JsonText(empty=[], help_text=Agent._meta.get_field("mcp_servers").help_text)
    tool_retries = JsonText(empty=[], help_text=Agent._meta.get_field("tool_retries").help_text)
    fallbacks = JsonText(empty=[], help_text=Agent._meta.get_field("fallbacks").help_text)
    allowed_hosts = JsonText(empty=[], help_text=Agent._meta.get_field("allowed_hosts").help_text)

    class Meta:
        model = Agent
        exclude: tuple[str, ...] = ()  # the admin's fieldsets name what is shown
        widgets = {
            "system_prompt": forms.Textarea(attrs={"rows": 16, "class": "vLargeTextField"}),
            "description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
        }
        help_texts = {
            "system_prompt": "What the agent is told about itself (its AGENTS.md). Variables: "
            "{{date}}, {{time_zone}}, {{user.name}}, {{user.first_name}}, {{thread.id}}, "
            "{{thread.title}}, {{agent.name}}, and {{context.NAME}} for what callers give.",
            "skill_mode": "Where the instructions of a loaded skill stand. In the system prompt "
            "they change the beginning of every request: each skill that is loaded or put away "
            "breaks the prompt cache, and the whole conversation is paid for again.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial = {**option_values(self.instance), **self.initial}
        if "toolbox" in self.fields:  # it is not, for people who may only look at it
            self.fields["toolbox"] = ToolboxChoice(self.instance.toolbox)
        if "provider" in self.fields:
            self.fields["provider"] = ProviderChoice(self.instance.provider)
        if "guardrails" in self.fields:
            self.fields["guardrails"] = GuardrailChoice(self.instance.guardrails)
        for name, field in self.relation_fields.items():
            self.initial.setdefault(name, field.begin(self.instance))

    def clean_tools(self) -> list[str] | None:
        return checked_tools(self.cleaned_data["tools"])

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug in RESERVED_SLUGS and "slug" in self.changed_data:
            raise ValidationError(
                "This is the slug of an agent that Vel makes by itself: choose another one."
            )
        return slug

    @property
    def relation_fields(self) -> dict[str, RelationField]:
        """The relations that the person may change. Their names are no fields of the model."""
        fields = self.fields.items()
        return {name: field for name, field in fields if isinstance(field, RelationField)}

    @property
    def related(self) -> dict[str, list[Any]]:
        """The rows that were chosen, by relation."""
        return {name: self.cleaned_data[name] for name in self.relation_fields}

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        for name, field in self.relation_fields.items():
            if name in self.cleaned_data:
                rows = field.checked(self.instance, self.cleaned_data[name])
                self.cleaned_data[name] = rows
        return cleaned

    def clean_interrupt_on(self) -> dict[str, Any]:
        return check_interrupt_on(self.cleaned_data["interrupt_on"])

    def clean_approval_rules(self) -> list[dict[str, Any]]:
        return check_rules(self.cleaned_data["approval_rules"])

    def _post_clean(self) -> None:
        """Once the agent is put together, see whether a run could pin it."""
        super()._post_clean()  # type: ignore[misc]  # the stubs lack it
        if self.errors:
            return
        try:
            take_options(self.instance, self.cleaned_data)
        except ValidationError as error:
            self.add_error(None, error)
            return
        try:
            build_spec(self.instance, subagents=())  # those have forms of their own
            if "model" in self.changed_data:
                check_script(self.instance.model)
            if "system_prompt" in self.changed_data:
                check_names(self.instance.system_prompt, "system_prompt")
        except InvalidRequest as error:
            field, reason = at_its_field(error.message)
            if field in self.fields:
                self.add_error(field, reason)
            else:
                self.add_error(None, error.message)
