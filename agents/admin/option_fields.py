"""Form fields, headings and read-only values for the options of an agent in the admin.

The type of an option determines its field. `FORM_FIELDS` contains functions that create other
fields, with the agent's current value. A feature adds functions in its `admin.FORM_FIELDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, Literal, get_origin

from django import forms
from django.contrib.admin.widgets import AdminIntegerFieldWidget, AdminTextInputWidget
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils.html import format_html
from pydantic import ValidationError as InvalidOptions
from pydantic.fields import FieldInfo

from agents.admin.approval_fields import (
    at_its_field,
    check_interrupt_on,
    check_rules,
    check_tool_name,
)
from agents.doors.admin.json_input import JsonText
from agents.doors.admin.text import pretty
from agents.hidden_text import visible
from agents.kernel.features import feature_modules, integrations
from agents.kernel.options import (
    definition_class,
    json_value,
    labels_of,
    option_classes,
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
from sandbox.toolboxes.find import toolbox_names

_LONG_JSON = {"rows": 12, "spellcheck": "false", "class": "vel-json"}
Make = Callable[[Any, str], forms.Field]
"""Creates a field from the agent's current value and the help text."""


class ToolboxChoice(forms.ChoiceField):
    """A choice of the toolboxes of this host, and the agent's current one if it is missing here."""

    default_error_messages = {
        "invalid_choice": "There is no toolbox “%(value)s” on this host. The operator builds it "
        "with: vel toolbox create NAME PACKAGE…",
    }

    def __init__(self, present: str, help_text: str) -> None:
        here = toolbox_names(DataSettings.now().toolboxes)
        choices = [("", "the system's Python"), *((name, name) for name in here)]
        if present and present not in here:
            choices.append((present, f"{present} (not on this host)"))
        super().__init__(required=False, choices=choices, help_text=help_text)


class ProviderChoice(forms.ChoiceField):
    """A choice of the known providers, and the agent's current one if it is unknown."""

    def __init__(self, present: str, help_text: str) -> None:
        choices = [("", "the provider of the settings"), *((name, name) for name in PROVIDERS)]
        if present and present not in PROVIDERS:
            choices.append((present, f"{present} (not known here)"))
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
        raise ValidationError('Give a list of tool names, as ["ls", "read_file"].')
    for name in tools:
        check_tool_name(name)
    twice = sorted({name for name in tools if tools.count(name) > 1})
    if twice:
        raise ValidationError(f"Named more than once: {', '.join(twice)}.")
    return tools


def _checked_schema(schema: object) -> object:
    try:
        schema_text(schema)
    except InvalidRequest as error:
        raise ValidationError(at_its_field(error.message)[1]) from None
    return schema


def _json(empty: Any, check: Callable[[Any], Any] | None = None, *, long: bool = False) -> Make:
    def make(present: Any, help_text: str) -> forms.Field:
        more = {"widget": forms.Textarea(attrs=_LONG_JSON)} if long else {}
        return JsonText(empty=empty, check=check, help_text=help_text, **more)

    return make


def _prompt(present: Any, help_text: str) -> forms.Field:
    widget = forms.Textarea(attrs={"rows": 16, "class": "vLargeTextField"})
    return forms.CharField(required=False, widget=widget, help_text=help_text)


FORM_FIELDS: Mapping[str, Make] = {
    "system_prompt": _prompt,
    "provider": ProviderChoice,
    "toolbox": ToolboxChoice,
    "integrations": IntegrationChoice,
    "tools": _json(None, checked_tools),
    "interrupt_on": _json({}, check_interrupt_on),
    "approval_rules": _json([], check_rules, long=True),
    "output_schema": _json(None, _checked_schema, long=True),
}


def option_fieldsets(may_change: Callable[[str], bool]) -> list[tuple[str, list[Any]]]:
    """Return the headings, each with its options: a field, or a read-only value."""
    found: dict[str, list[Any]] = {}
    for kind in option_classes():
        fields = found.setdefault(kind.title or kind.__name__, [])
        fields += [name if may_change(name) else option_shown(name) for name in kind.model_fields]
    return list(found.items())


def options_shown() -> list[Callable[[Agent], Any]]:
    """Return for each option a function that shows an agent's value in the admin."""
    return [option_shown(name) for name in option_fields()]


@cache
def option_shown(name: str) -> Callable[[Agent], Any]:
    """Return the function for an option. Cached, because the admin compares these functions."""
    show: Any = partial(_show, name)
    show.__name__ = name
    show.short_description = name.replace("_", " ")
    show.boolean = option_fields()[name].annotation is bool
    return show


def _show(name: str, agent: Agent) -> Any:
    value = json_value(getattr(agent, name))
    field = option_fields()[name]
    if isinstance(value, list | dict):
        return format_html("<pre>{}</pre>", visible(pretty(value))) if value else None
    if get_origin(without_none(field.annotation)[0]) is Literal:
        return labels_of(field).get(value, value)
    return visible(value) if isinstance(value, str) else value


def option_form_fields(agent: Agent, may_change: Callable[[str], bool]) -> dict[str, forms.Field]:
    """Return a form field for each option that the user can change. All are optional."""
    special = dict(FORM_FIELDS)
    for _, module in feature_modules("admin"):
        special |= getattr(module, "FORM_FIELDS", {})
    found = {}
    for name, option in option_fields().items():
        if not may_change(name):
            continue
        if name in special:
            found[name] = special[name](getattr(agent, name), option.description or "")
        else:
            found[name] = _form_field(name, option)
    return found


def take_options(agent: Agent, typed: dict[str, Any]) -> None:
    """Set the options of `agent` from the cleaned data of the form, without saving.

    Raises `ValidationError` by field.
    """
    values = {
        name: _value(field, typed[name], option_default(name))
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


def _value(field: FieldInfo, typed: Any, default: Any) -> Any:
    """Return the value of a field. Empty fields have the default, except text fields."""
    if field.annotation is str:
        return typed
    return default if typed in (None, "") else typed


@lru_cache(maxsize=1)
def _limits(definition: type[Any]) -> dict[str, tuple[int | None, int | None]]:
    """Return the minimum and maximum of each option that has them."""
    found = {}
    for name, schema in definition.model_json_schema()["properties"].items():
        limited = next((each for each in schema.get("anyOf", ()) if "type" in each), schema)
        found[name] = (limited.get("minimum"), limited.get("maximum"))
    return found


def _form_field(name: str, option: FieldInfo) -> forms.Field:
    kind, _ = without_none(option.annotation)
    more: dict[str, Any] = {"required": False, "help_text": option.description or ""}
    if kind is bool:
        return forms.BooleanField(**more)
    if kind in (int, float):
        least, most = _limits(definition_class())[name]
        if kind is float:
            return forms.FloatField(min_value=least, max_value=most, **more)
        widget = AdminIntegerFieldWidget()
        return forms.IntegerField(min_value=least, max_value=most, widget=widget, **more)
    if kind is str:
        return forms.CharField(widget=AdminTextInputWidget(), **more)
    if get_origin(kind) is Literal:
        labels = labels_of(option)
        kind = type(next(iter(labels)))
        return forms.TypedChoiceField(
            choices=[*labels.items()], coerce=lambda typed: kind(typed), empty_value="", **more
        )
    empty = option_default(name)
    example = f" JSON, for example {pretty(empty)}." if not option.description else ""
    return JsonText(empty=empty, help_text=f"{more['help_text']}{example}".strip())
