"""Headings and read-only values for the options of an agent in the admin."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal, get_origin

from django.utils.html import format_html

from agents.doors.admin.text import pretty
from agents.doors.agent_form.labels import lazy_label, option_text
from agents.hidden_text import visible
from agents.kernel.options import (
    json_value,
    labels_of,
    option_classes,
    option_fields,
    without_none,
)
from agents.models import Agent


def option_fieldsets(may_change: Callable[[str], bool]) -> list[tuple[str, list[Any]]]:
    """Return the English headings, each with its options: a field, or a read-only value."""
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
    show.short_description = lazy_label(name)
    show.boolean = option_fields()[name].annotation is bool
    return show


def _show(name: str, agent: Agent) -> Any:
    value = json_value(getattr(agent, name))
    field = option_fields()[name]
    if isinstance(value, list | dict):
        return format_html("<pre>{}</pre>", visible(pretty(value))) if value else None
    if get_origin(without_none(field.annotation)[0]) is Literal:
        return option_text(labels_of(field).get(value, str(value)))
    return visible(value) if isinstance(value, str) else value
