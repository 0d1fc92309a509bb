"""The fields of an admin's form as fields of JSON bodies and responses."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from rest_framework import serializers

from agents.doors.admin.json_input import JsonText
from agents.doors.rest.serializers import AgentField, Flag, Text
from agents.models import Agent

MOST_NAMES = 1_000
MOST_CHARACTERS = 100_000
Field = serializers.Field[Any, Any, Any, Any]


class Given(forms.Field):
    """A field of a form whose value is checked already, and is not text."""

    def clean(self, value: Any) -> Any:
        return value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(initial != data)


class GivenWidget(forms.Widget):
    """Reads the value as it is."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        return data.get(name)


def name_column(model: type[Model]) -> str:
    """Return the column with which bodies name a row of `model`: `slug` of an agent, for example.

    Rows without a name that is unique have their id.
    """
    if model is get_user_model():
        return str(get_user_model().USERNAME_FIELD)
    for name in ("slug", "name"):
        column = next((each for each in model._meta.fields if each.name == name), None)
        if column is not None and (column.unique or column.primary_key):
            return name
    return "pk"


def name_of(row: Model | None) -> str | None:
    return None if row is None else str(getattr(row, name_column(type(row))))


def find_named(rows: QuerySet[Any], names: list[Any], what: str) -> list[Any]:
    """Return the keys of the rows with these names. Raises `ValidationError` for an unknown one.

    Agents have their id as another name.
    """
    column = name_column(rows.model)
    keys = dict(rows.filter(**{f"{column}__in": names}).values_list(column, "pk"))
    keys = {str(name): key for name, key in keys.items()}
    if rows.model is Agent:
        # As in `agent_named`: the id of any agent is no slug.
        ids = set(Agent.objects.filter(pk__in=names).values_list("pk", flat=True))
        usable = set(rows.filter(pk__in=ids).values_list("pk", flat=True))
        keys = {name: key for name, key in keys.items() if name not in ids}
        keys |= {key: key for key in usable}
    unknown = [str(name)[:100] for name in names if str(name) not in keys]
    if unknown:
        raise ValidationError(f"There is no {what} {unknown[0]!r}.")
    return [keys[str(name)] for name in names]


def body_field(field: forms.Field, *, required: bool) -> Field:
    """Return the field of a body for a field of a form. Absent fields keep their value."""
    more: dict[str, Any] = {"required": required, "help_text": str(field.help_text)}
    null = {**more, "allow_null": not field.required}
    if isinstance(field, forms.BooleanField):
        return Flag(**more)
    if isinstance(field, JsonText):
        return _json(field, Text(max_length=10_000, allow_blank=True), **more)
    if isinstance(field, forms.ModelMultipleChoiceField):
        child = AgentField() if _names_agents(field) else Text(max_length=200)
        return serializers.ListField(child=child, max_length=MOST_NAMES, **more)
    if isinstance(field, forms.ModelChoiceField):
        if _names_agents(field):
            words = f"{field.help_text} The id or the slug of an agent.".strip()
            return AgentField(**{**null, "help_text": words})
        return Text(max_length=200, **null)
    if isinstance(field, forms.MultipleChoiceField):
        return serializers.MultipleChoiceField(choices=_choices(field), **more)
    if isinstance(field, forms.ChoiceField):
        return serializers.ChoiceField(
            choices=_choices(field),
            **more,
        )
    if isinstance(field, forms.DateTimeField | forms.SplitDateTimeField):
        return serializers.DateTimeField(default_timezone=datetime.UTC, **null)
    if isinstance(field, forms.FloatField):
        return serializers.FloatField(**_limits(field), **null)
    if isinstance(field, forms.DecimalField):
        return serializers.DecimalField(
            max_digits=field.max_digits,
            decimal_places=field.decimal_places,
            **_limits(field),
            **null,
        )
    if isinstance(field, forms.IntegerField):
        return serializers.IntegerField(**_limits(field), **null)
    if isinstance(field, forms.CharField):
        longest = field.max_length or MOST_CHARACTERS
        return Text(max_length=longest, allow_blank=not field.required, **more)
    raise TypeError(f"A form has a {type(field).__name__}: declare its field in `Managed.own`.")


def shown_field(field: forms.Field, column: str, name: str) -> Field:
    """Return the field `name` of a response for a field of a form and its column."""
    more: dict[str, Any] = {"help_text": str(field.help_text)}
    if column != name:  # REST framework refuses a source equal to the field's name
        more["source"] = column
    null = {**more, "allow_null": not field.required}
    if isinstance(field, forms.BooleanField):
        return serializers.BooleanField(**more)
    if isinstance(field, JsonText):
        return _json(field, serializers.CharField(allow_blank=True), **more)
    if isinstance(field, forms.ModelMultipleChoiceField):
        return NamesField(**more)
    if isinstance(field, forms.ModelChoiceField):
        return NameField(**null)
    if isinstance(field, forms.ChoiceField):
        return serializers.ChoiceField(choices=_choices(field), **more)
    if isinstance(field, forms.DateTimeField | forms.SplitDateTimeField):
        return moment_field(**null)
    if isinstance(field, forms.FloatField):
        return serializers.FloatField(**null)
    if isinstance(field, forms.DecimalField):
        return serializers.DecimalField(
            max_digits=field.max_digits, decimal_places=field.decimal_places, **null
        )
    if isinstance(field, forms.IntegerField):
        return serializers.IntegerField(**null)
    return serializers.CharField(allow_blank=not field.required, **more)


def moment_field(**options: Any) -> serializers.DateTimeField:
    return serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC, **options)


class NameField(serializers.CharField):
    """The name of a row that another row refers to."""

    def to_representation(self, value: Any) -> Any:
        return name_of(value)


class NamesField(serializers.ListField):
    """The names of the rows of a many-to-many field, sorted."""

    child = serializers.CharField()

    def to_representation(self, data: Any) -> list[str]:
        return sorted(str(name_of(row)) for row in data.all())


class Computed(serializers.CharField):
    """A text of the row that a function returns."""

    def __init__(self, find: Callable[[Any], str | None], **options: Any) -> None:
        super().__init__(source="*", **options)
        self.find = find

    def to_representation(self, value: Any) -> Any:
        return self.find(value)


def _names_agents(field: forms.ModelChoiceField) -> bool:
    return field.queryset is not None and field.queryset.model is Agent


def _json(field: JsonText, item: Field, **more: Any) -> Field:
    if field.empty == []:
        return serializers.ListField(child=item, max_length=10_000, **more)
    return serializers.JSONField(**more)


def _choices(field: Any) -> list[Any]:
    """Return the choices without the empty one of forms."""
    return [choice for choice in field.choices if choice[0] != ""]


def _limits(field: Any) -> dict[str, Any]:
    return {"min_value": field.min_value, "max_value": field.max_value}
