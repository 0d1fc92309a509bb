"""Options of an agent: fields that a feature adds to the definition of an agent.

A feature lists classes of options in its `options.OPTIONS`. Their fields are part of the agent's
file, of the form in the admin, of `create_deep_agent(options=…)` and of each stored version, by
their own names. They need no column and no migration: an agent stores the values that differ from
the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from agents.kernel.features import collect


class AgentOptions(BaseModel):
    """The options of one feature. Each field has a type, a default and a description.

    A middleware reads them with `spec.option(MyOptions)`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    title: ClassVar[str] = ""
    """The heading of the fields in the admin. Empty: the name of the feature."""
    permission: ClassVar[str] = ""
    """Who lacks it can only look at the fields. Empty: who may change the agent may change them."""

    def pinned(self, agent: Any) -> Mapping[str, Any]:
        """Return what a version of `agent` with these options has besides, as JSON data.

        Raises `agents.services.errors.InvalidRequest`, whose message begins with the name of the
        field.
        """
        return {}

    def tool_names(self) -> Collection[str]:
        """Return the names of tools that only agents with these options have."""
        return ()


@lru_cache(maxsize=1)
def option_classes() -> tuple[type[AgentOptions], ...]:
    """Return the classes of all installed features, in their order.

    Raises `ImproperlyConfigured` for a class that cannot be used, and for a name that two have.
    """
    found: dict[str, type[AgentOptions]] = {}
    classes = []
    for config, kind in collect("options", "OPTIONS"):
        if not (isinstance(kind, type) and issubclass(kind, AgentOptions)):
            raise ImproperlyConfigured(
                f"{config.name}.options.OPTIONS must contain subclasses of AgentOptions, not "
                f"{kind!r}."
            )
        for name, field in kind.model_fields.items():
            if field.is_required():
                raise ImproperlyConfigured(
                    f"{kind.__module__}.{kind.__qualname__}.{name} needs a default: agents that "
                    "were defined before have no value for it."
                )
            if name in found:
                raise ImproperlyConfigured(
                    f"The option {name!r} is declared twice: by {found[name].__module__} and by "
                    f"{kind.__module__}. Rename one."
                )
            found[name] = kind
        classes.append(kind)
    return tuple(classes)


def option_fields() -> dict[str, FieldInfo]:
    """Return the fields of all options by name."""
    return {name: field for kind in option_classes() for name, field in kind.model_fields.items()}


def option_defaults() -> dict[str, Any]:
    """Return the default of each option, as JSON data."""
    return {
        name: value
        for kind in option_classes()
        for name, value in kind().model_dump(mode="json").items()
    }


def option_permissions() -> dict[str, str]:
    """Return the permission that a field needs, for the fields that need one."""
    return {
        name: kind.permission
        for kind in option_classes()
        if kind.permission
        for name in kind.model_fields
    }


def pinned_fields(values: Mapping[str, Any], agent: Any) -> dict[str, Any]:
    """Return what a version of `agent` with these valid options has besides them.

    Raises `agents.services.errors.InvalidRequest`.
    """
    return {
        name: value
        for options in _options_in(values)
        for name, value in options.pinned(agent).items()
    }


def option_tools(values: Mapping[str, Any]) -> set[str]:
    """Return the names of tools that only agents with these valid options have."""
    return {name for options in _options_in(values) for name in options.tool_names()}


def _options_in(values: Mapping[str, Any]) -> Iterator[AgentOptions]:
    """The options of which `values` has a field."""
    for kind in option_classes():
        own = {name: values[name] for name in kind.model_fields if name in values}
        if own:
            yield kind.model_validate_json(json.dumps(own))


def checked_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` as JSON data without those that are the default.

    Raises `pydantic.ValidationError`, also for a name that no installed feature declares.
    """
    left = dict(values)
    checked: dict[str, Any] = {}
    for kind in option_classes():
        own = {name: left.pop(name) for name in kind.model_fields if name in left}
        # As JSON, so that a list fits a tuple, although a number does not fit a text.
        options = kind.model_validate_json(json.dumps(own), strict=True)
        default = kind().model_dump(mode="json")
        checked |= {
            name: value
            for name, value in options.model_dump(mode="json").items()
            if value != default[name]
        }
    AgentOptions.model_validate(left)
    return checked


def known_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of stored `values` that an installed feature declares."""
    fields = option_fields()
    return {name: value for name, value in values.items() if name in fields}


def without_known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of stored `values` that no installed feature declares. They are kept."""
    fields = option_fields()
    return {name: value for name, value in values.items() if name not in fields}


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        option_classes.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.options")
