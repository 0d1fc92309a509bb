"""A form field for each field of an agent's definition.

The type of a field determines its form field. `FORM_FIELDS` contains functions that create other
fields, with the agent's current value. A feature adds functions in its `form_fields.FORM_FIELDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel
from pydantic import ValidationError as InvalidOptions
from pydantic.fields import FieldInfo

from agents.agent_files.shape import file_class
from agents.doors.admin.json_input import JsonText
from agents.doors.admin.text import pretty
from agents.doors.agent_form.checks import (
    at_its_field,
    check_interrupt_on,
    check_rules,
    check_tool_name,
)
from agents.doors.agent_form.labels import lazy_label, option_text
from agents.doors.agent_form.lines import LinesField
from agents.doors.agent_form.rows import MapField, RowsField
from agents.doors.agent_form.texts import LongText
from agents.doors.agent_form.tools import ToolsField
from agents.kernel.features import feature_modules, integrations
from agents.kernel.options import (
    help_of,
    labels_of,
    option_default,
    option_fields,
    validated_options,
    without_none,
)
from agents.models import Agent
from agents.providers.registry import PROVIDERS
from agents.services.agent_definitions.actions import schema_text
from agents.services.errors import InvalidRequest
from agents.settings import DataSettings
from agents.spec import ALL_TOOLS, InterruptRule, PolicyRule
from sandbox.toolboxes.find import toolbox_names

_LONG_JSON = {"rows": 12, "spellcheck": "false", "class": "vel-json"}
Make = Callable[[Any, str], forms.Field]
"""Creates a field from the agent's current value and the help text."""


class ToolboxChoice(forms.ChoiceField):
    """A choice of the toolboxes of this host, and the agent's current one if it is missing here."""

    default_error_messages = {
        "invalid_choice": _(
            "There is no toolbox “%(value)s” on this host. The operator builds it with: vel "
            "toolbox create NAME PACKAGE…"
        ),
    }

    def __init__(self, present: str, help_text: str) -> None:
        here = toolbox_names(DataSettings.now().toolboxes)
        choices = [("", gettext("the system's Python")), *((name, name) for name in here)]
        if present and present not in here:
            choices.append((present, gettext("%(name)s (not on this host)") % {"name": present}))
        super().__init__(required=False, choices=choices, help_text=help_text)


class ProviderChoice(forms.ChoiceField):
    """A choice of the known providers, and the agent's current one if it is unknown."""

    def __init__(self, present: str, help_text: str) -> None:
        choices = [
            ("", gettext("the provider of the settings")),
            *((name, name) for name in PROVIDERS),
        ]
        if present and present not in PROVIDERS:
            choices.append((present, gettext("%(name)s (not known here)") % {"name": present}))
        super().__init__(required=False, choices=choices, help_text=help_text)


class IntegrationChoice(forms.MultipleChoiceField):
    """A choice of the services of the installed features."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, present: Any, help_text: str) -> None:
        choices = [(each.name, each.label) for each in integrations()]
        super().__init__(required=False, choices=choices, help_text=help_text)


def checked_tools(tools: object) -> list[str] | None:
    """Return `tools` as entered: a list of names, or None for all. Raises `ValidationError`."""
    if tools is None:
        return None
    if not isinstance(tools, list):
        raise ValidationError(gettext('Give a list of tool names, as ["ls", "read_file"].'))
    for name in tools:
        if name != ALL_TOOLS:
            check_tool_name(name)
    twice = sorted({name for name in tools if tools.count(name) > 1})
    if twice:
        text = gettext("Named more than once: %(names)s.")
        raise ValidationError(text % {"names": ", ".join(twice)})
    return tools


def _checked_schema(schema: object) -> object:
    try:
        schema_text(schema)
    except InvalidRequest as error:
        raise ValidationError(at_its_field(error.message)[1]) from None
    return schema


def _schema(present: Any, help_text: str) -> forms.Field:
    widget = forms.Textarea(attrs=_LONG_JSON)
    return JsonText(empty=None, check=_checked_schema, help_text=help_text, widget=widget)


def _tools(present: Any, help_text: str) -> forms.Field:
    return ToolsField(check=checked_tools, help_text=help_text)


def _interrupt_on(present: Any, help_text: str) -> forms.Field:
    return MapField(InterruptRule, check=check_interrupt_on, help_text=help_text)


def _rules(present: Any, help_text: str) -> forms.Field:
    return RowsField(PolicyRule, check=check_rules, help_text=help_text, noun=gettext("rule"))


def _prompt(present: Any, help_text: str) -> forms.Field:
    widget = forms.Textarea(attrs={"rows": 16, "class": "vLargeTextField"})
    return LongText(required=False, widget=widget, help_text=help_text)


FORM_FIELDS: Mapping[str, Make] = {
    "system_prompt": _prompt,
    "provider": ProviderChoice,
    "toolbox": ToolboxChoice,
    "integrations": IntegrationChoice,
    "tools": _tools,
    "interrupt_on": _interrupt_on,
    "approval_rules": _rules,
    "output_schema": _schema,
}


def special_fields() -> dict[str, Make]:
    """Return the functions for the fields that their type does not determine, by name."""
    found = dict(FORM_FIELDS)
    for _name, module in feature_modules("form_fields"):
        found |= getattr(module, "FORM_FIELDS", {})
    return found


def option_form_fields(agent: Agent, may_change: Callable[[str], bool]) -> dict[str, forms.Field]:
    """Return a form field for each option that the user can change. All are optional."""
    special = special_fields()
    found = {
        name: definition_field(name, option, getattr(agent, name), special=special)
        for name, option in option_fields().items()
        if may_change(name)
    }
    for name, field in found.items():
        field.label = lazy_label(name)
    return found


def definition_field(
    name: str, field: FieldInfo, present: Any, *, special: Mapping[str, Make] | None = None
) -> forms.Field:
    """Return the form field for the field `name` of an agent's file, with its current value."""
    special = special_fields() if special is None else special
    if name in special:
        return special[name](present, option_text(help_of(field)))
    return form_field(name, field)


def take_options(agent: Agent, typed: dict[str, Any]) -> None:
    """Set the options of `agent` from the cleaned data of the form, without saving.

    Raises `ValidationError` by field.
    """
    values = {
        name: entered_value(field, typed[name], option_default(name))
        for name, field in option_fields().items()
        if name in typed  # read-only fields are missing
    }
    try:
        validated_options(values)
    except InvalidOptions as error:
        problems: dict[str, list[str]] = {}
        for each in error.errors(include_url=False):
            location = ".".join(map(str, each["loc"]))
            field, reason = at_its_field(f"{location}: {each['msg']}")
            problems.setdefault(field or NON_FIELD_ERRORS, []).append(reason)
        raise ValidationError(problems) from None
    for name, value in values.items():
        setattr(agent, name, value)


def entered_value(field: FieldInfo, typed: Any, default: Any) -> Any:
    """Return the value of a field. Empty fields have the default, except text fields."""
    if without_none(field.annotation) == (str, False):
        return typed
    return default if typed in (None, "") else typed


@lru_cache(maxsize=1)
def _limits(definition: type[BaseModel]) -> dict[str, tuple[int | None, int | None]]:
    """Return the minimum and maximum of each field that has them."""
    found = {}
    for name, schema in definition.model_json_schema()["properties"].items():
        limited = next((each for each in schema.get("anyOf", ()) if "type" in each), schema)
        found[name] = (limited.get("minimum"), limited.get("maximum"))
    return found


def form_field(name: str, option: FieldInfo) -> forms.Field:
    """Return the form field for the type of a field of an agent's file."""
    kind, _ = without_none(option.annotation)
    more: dict[str, Any] = {"required": False, "help_text": option_text(help_of(option))}
    if kind is bool:
        return forms.BooleanField(**more)
    if kind in (int, float):
        least, most = _limits(file_class())[name]
        if kind is float:
            return forms.FloatField(min_value=least, max_value=most, **more)
        widget = forms.NumberInput(attrs={"class": "vIntegerField"})
        return forms.IntegerField(min_value=least, max_value=most, widget=widget, **more)
    if kind is str:
        return forms.CharField(widget=forms.TextInput(attrs={"class": "vTextField"}), **more)
    if get_origin(kind) is Literal:
        labels = labels_of(option)
        kind = type(next(iter(labels)))
        return forms.TypedChoiceField(
            choices=[(value, option_text(label)) for value, label in labels.items()],
            coerce=lambda typed: kind(typed),
            empty_value="",
            **more,
        )
    return _list_field(name, option, kind, **more)


def _list_field(name: str, option: FieldInfo, kind: Any, **more: Any) -> forms.Field:
    del more["required"]
    empty = option.get_default(call_default_factory=True)
    item = without_none(get_args(kind)[0])[0] if get_origin(kind) is tuple else None
    if isinstance(item, type) and issubclass(item, BaseModel):
        return RowsField(item, **more)
    if item is str and empty is not None:
        return LinesField(**more)
    empty = list(empty) if isinstance(empty, tuple) else empty
    if not option.description:
        example = gettext("JSON, for example %(example)s.") % {"example": pretty(empty)}
        more["help_text"] = f"{more['help_text']} {example}".strip()
    return JsonText(empty=empty, **more)
