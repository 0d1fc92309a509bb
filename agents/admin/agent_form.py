"""The form of an agent: what is typed into its JSON fields, and errors where they belong."""

from __future__ import annotations

import json
import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.admin.json_input import parse_json
from agents.conf import vel_settings
from agents.models import Agent
from agents.services.agents import build_spec
from agents.services.errors import InvalidRequest
from agents.states import Decision
from sandbox.toolbox_find import toolbox_names

_TOOL_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_RULE = (
    'true (ask), false (never ask) or {"allowed_decisions": ["approve", "reject"]} '
    f"with some of {', '.join(Decision.values)}"
)


class JsonText(forms.CharField):
    """JSON as a person writes it. An empty text is `empty`, and `empty` is shown as no text."""

    widget = forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "vel-json"})

    def __init__(self, *, empty: Any, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self.empty = empty

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value  # what was typed, shown again with its error
        return "" if value == self.empty else json.dumps(value, ensure_ascii=False, indent=2)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value) or ""
        return parse_json(text) if text else self.empty

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != initial)
        except ValidationError:
            return True

    def run_validators(self, value: Any) -> None:
        """Those of a text do not apply to what it means."""


class ToolboxChoice(forms.ChoiceField):
    """The toolboxes of this host, and the one that the agent has, wherever that may be."""

    default_error_messages = {
        "invalid_choice": "There is no toolbox “%(value)s” on this host. The operator builds it "
        "with: vel toolbox create NAME PACKAGE…",
    }

    def __init__(self, present: str) -> None:
        here = toolbox_names(vel_settings().toolboxes)
        choices = [("", "the system's Python"), *((name, name) for name in here)]
        if present and present not in here:
            choices.append((present, f"{present} (not on this host)"))
        help_text = Agent._meta.get_field("toolbox").help_text
        super().__init__(required=False, choices=choices, help_text=help_text)


class AgentForm(forms.ModelForm):
    """Checks what `save_agent` would refuse while the form can still say at which field."""

    tools = JsonText(empty=None, help_text=Agent._meta.get_field("tools").help_text)
    interrupt_on = JsonText(empty={}, help_text=Agent._meta.get_field("interrupt_on").help_text)

    allowed_hosts = JsonText(empty=[], help_text=Agent._meta.get_field("allowed_hosts").help_text)

    class Meta:
        model = Agent
        exclude: tuple[str, ...] = ()  # the admin's fieldsets name what is shown
        widgets = {
            "system_prompt": forms.Textarea(attrs={"rows": 16, "class": "vLargeTextField"}),
            "description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "toolbox" in self.fields:  # it is not, for people who may only look at it
            self.fields["toolbox"] = ToolboxChoice(self.instance.toolbox)

    def clean_tools(self) -> list[str] | None:
        tools = self.cleaned_data["tools"]
        if tools is None:
            return None
        if not isinstance(tools, list):
            raise ValidationError('Give a list of tool names, as ["ls", "read_file"].')
        for name in tools:
            _check_tool_name(name)
        twice = sorted({name for name in tools if tools.count(name) > 1})
        if twice:
            raise ValidationError(f"Named more than once: {', '.join(twice)}.")
        return tools

    def clean_interrupt_on(self) -> dict[str, Any]:
        rules = self.cleaned_data["interrupt_on"]
        if not isinstance(rules, dict):
            raise ValidationError('Give an object of tool names, as {"execute": true}.')
        for name, rule in rules.items():
            _check_tool_name(name)
            _check_rule(name, rule)
        return rules

    def _post_clean(self) -> None:
        """Once the agent is put together, see whether a run could pin it."""
        super()._post_clean()  # type: ignore[misc]  # the stubs lack it
        if self.errors:
            return
        try:
            build_spec(self.instance)
        except InvalidRequest as error:
            # Its message begins with the field's name.
            name, _, reason = error.message.partition(": ")
            field = name.split(".")[0]
            if reason and field in self.fields:
                self.add_error(field, reason)
            else:
                self.add_error(None, error.message)


def _check_tool_name(name: object) -> None:
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise ValidationError(
            f"{json.dumps(name, ensure_ascii=False)} is not the name of a tool: "
            "write it in quotes, as the agent calls it."
        )


def _check_rule(tool: str, rule: object) -> None:
    if isinstance(rule, bool):
        return
    if not isinstance(rule, dict) or set(rule) - {"allowed_decisions"}:
        raise ValidationError(
            f"The rule of {tool} is {json.dumps(rule, ensure_ascii=False)}; it may be {_RULE}."
        )
    decisions = rule.get("allowed_decisions", Decision.values)
    if not isinstance(decisions, list) or not decisions:
        raise ValidationError(
            f"allowed_decisions of {tool} must be a list that is not empty: "
            f"choose from {', '.join(Decision.values)}."
        )
    unknown = [word for word in decisions if word not in Decision.values]
    if unknown:
        raise ValidationError(
            f"allowed_decisions of {tool} has {', '.join(map(str, unknown))}: "
            f"choose from {', '.join(Decision.values)}."
        )
