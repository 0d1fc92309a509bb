"""The options of features in the form of an agent."""

from __future__ import annotations

import json
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from django import forms
from django.core.exceptions import ValidationError
from pydantic import ValidationError as InvalidOptions
from pydantic.fields import FieldInfo

from agents.doors.admin.json_input import JsonText
from agents.kernel.options import (
    checked_options,
    known_options,
    option_classes,
    option_defaults,
    option_fields,
    without_known,
)
from agents.models import Agent


def option_fieldsets() -> list[tuple[str, dict[str, Any]]]:
    """Return one fieldset for the options of each feature."""
    return [
        (kind.title or kind.__name__, {"fields": list(kind.model_fields)})
        for kind in option_classes()
    ]


def option_form_fields() -> dict[str, forms.Field]:
    """Return a form field for each option. None of them must be filled in."""
    defaults = option_defaults()
    return {name: _form_field(field, defaults[name]) for name, field in option_fields().items()}


def option_values(agent: Agent) -> dict[str, Any]:
    """Return the value of each option of `agent`, for the form."""
    return {name: agent.options.get(name, value) for name, value in option_defaults().items()}


def take_options(agent: Agent, typed: dict[str, Any]) -> None:
    """Set the options of `agent` from the cleaned data of the form. Nothing is stored.

    Raises `ValidationError` by field.
    """
    defaults = option_defaults()
    values = {
        name: _value(field, typed[name], defaults[name])
        for name, field in option_fields().items()
        if name in typed  # it is not, for people who may only look at it
    }
    try:
        checked = checked_options({**known_options(agent.options), **values})
    except InvalidOptions as error:
        problems: dict[str, list[str]] = {}
        for each in error.errors(include_url=False):
            problems.setdefault(str(each["loc"][0]), []).append(each["msg"])
        raise ValidationError(problems) from None
    agent.options = {**without_known(agent.options), **checked}


def _value(field: FieldInfo, typed: Any, default: Any) -> Any:
    """What a person typed. A text can be empty; another field that is empty has its default."""
    if field.annotation is str:
        return typed
    return default if typed in (None, "") else typed


def _form_field(field: FieldInfo, default: Any) -> forms.Field:
    kind, help_text = _without_none(field.annotation), field.description or ""
    if kind is bool:
        return forms.BooleanField(required=False, help_text=help_text)
    if kind is int:
        return forms.IntegerField(required=False, help_text=help_text)
    if kind is float:
        return forms.FloatField(required=False, help_text=help_text)
    if kind is str:
        return forms.CharField(required=False, help_text=help_text)
    if get_origin(kind) is Literal and all(isinstance(value, str) for value in get_args(kind)):
        choices = [(value, value) for value in get_args(kind)]
        return forms.ChoiceField(required=False, choices=choices, help_text=help_text)
    help_text = f"{help_text} JSON, for example {json.dumps(default)}.".strip()
    return JsonText(empty=default, help_text=help_text)


def _without_none(annotation: Any) -> Any:
    """`int` of `int | None`."""
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        if len(kinds) == 1:
            return kinds[0]
    return annotation
