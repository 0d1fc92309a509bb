"""Translatable names of Vel's apps, models and fields. Django derives most from the code.

A `verbose_name` in each model would repeat these names, and need a migration for each change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

CONTEXT = "row"
"""The context of these names in the catalog, because the same words are also verbs elsewhere."""
OWN_APPS = ("agents", "memory", "skills_app", "velproject")

derived_names: set[str] = set()
"""The English names that `translate_row_names` has replaced."""


def translate_row_names() -> None:
    """Let the admin show the names in the language of the page."""
    for config in apps.get_app_configs():
        if config.name.startswith(OWN_APPS):
            _translate(config, "verbose_name")
            for model in config.get_models():
                for owner, attribute in _derived(model):
                    _translate(owner, attribute)


def _translate(owner: Any, attribute: str) -> None:
    name = str(getattr(owner, attribute))
    derived_names.add(name)
    setattr(owner, attribute, pgettext_lazy(CONTEXT, name))


def _derived(model: type[Model]) -> Iterator[tuple[Any, str]]:
    options = model._meta
    # First: Django derives the plural from the singular.
    if "verbose_name_plural" not in options.original_attrs:
        yield options, "verbose_name_plural"
    if not isinstance(options.verbose_name, Promise):
        yield options, "verbose_name"
    for field in (*options.local_fields, *options.local_many_to_many):
        if not isinstance(field.verbose_name, Promise):
            yield field, "verbose_name"
