"""One row in every table that refers to a thread, found through the models."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from django.db import connection, models
from django.db.models import NOT_PROVIDED
from django.utils import timezone

from agents.features.budgets.models import Allowance, Budget
from agents.models import Agent, Run, RunClock, Thread
from agents.secret_text import SecretText, SecretTextField

MADE_OTHERWISE = {Thread, Run, RunClock, Allowance}
"""Models whose rows a run has already, or whose rows belong to one of several models."""


KEPT = "not of the thread"


def hanging(model: type[models.Model]) -> Iterator[tuple[type[models.Model], str, bool]]:
    """Yield (model, field, whether rows are deleted together) for references to `model`."""
    for relation in model._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ManyToOneRel):
            other, name = relation.related_model, relation.field.name
            yield (
                other,
                name,
                relation.on_delete is models.CASCADE or name in getattr(other, "erased_with", ()),
            )


def plant(run: Run, *, said: str) -> set[str]:
    """Create the rows with the text `said`. Return the labels of the models."""
    planted = set()
    anchors: list[models.Model] = [run.thread, run]
    for anchor in anchors:
        for model, field, goes in hanging(type(anchor)):
            if model in MADE_OTHERWISE:
                continue
            text = said if goes else KEPT
            row = make_row(model, {field: anchor, **_others(model, field, run)}, text)
            planted.add(model._meta.label)
            if goes and model not in map(type, anchors) and any(hanging(model)):
                anchors.append(row)
    return planted


def _others(model: type[models.Model], field: str, run: Run) -> dict[str, Any]:
    """Return the required references of `model` to the run and its thread."""
    given: dict[str, Any] = {}
    for other in model._meta.concrete_fields:
        if other.name != field and not other.null and other.related_model in (Run, Thread):
            given[other.name] = run if other.related_model is Run else run.thread
    return given


def make_row(model: type[models.Model], given: dict[str, Any], said: str) -> models.Model:
    """Create a row with the text `said`. References use an existing row or a new one."""
    values = dict(given)
    if model is Budget:  # a budget requires a limit and a subject
        values = {"agent": Agent.objects.first(), "max_tokens": 1, **values}
    for field in model._meta.concrete_fields:
        if field.name in values or (field.null and not isinstance(field, models.TextField)):
            continue
        if field.related_model is not None:
            other: Any = field.related_model
            there = other._base_manager.order_by("-pk").first()
            values[field.name] = there or make_row(other, {}, KEPT)
        elif isinstance(field, SecretTextField):
            values[field.name] = SecretText(KEPT)
        elif isinstance(field, models.TextField):
            values[field.name] = said
        elif field.has_default() or field.primary_key or field.name == "pk":
            continue
        else:
            values[field.name] = _value(field)
    return model._base_manager.create(**values)


def _value(field: models.Field[Any, Any]) -> Any:
    if isinstance(field, models.CharField):
        return (field.choices or [(secrets.token_hex(8)[: field.max_length], "")])[0][0]
    if isinstance(field, models.BinaryField):
        return b"x"
    if isinstance(field, models.DateTimeField):
        return timezone.now()
    if isinstance(field, models.BooleanField):
        return False
    if isinstance(field, models.IntegerField | models.FloatField):
        return secrets.randbelow(30_000) + 1000
    assert field.default is NOT_PROVIDED, f"how is {field} filled?"
    return {}


def rows_with(said: str) -> set[str]:
    """Return the tables that have the text in any row."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            if any(said in str(row) for row in cursor.fetchall()):
                found.add(table)
    return found
