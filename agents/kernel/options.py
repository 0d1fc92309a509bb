"""Options of an agent: fields that a feature adds to the definition of an agent.

A feature lists classes of options in its `options.OPTIONS`. Their fields are part of the agent's
file, of the form in the admin, of `create_deep_agent(options=…)` and of each stored version, by
their own names. They need no column and no migration: an agent stores the values that differ from
the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from agents.kernel.features import collect

NamedTool = tuple[tuple[str | int, ...], str]
"""The path of a name in the values of options, and the name."""


class AgentOptions(BaseModel):
    """The options of one feature. Each field has a type, a default and a description.

    A middleware reads them with `spec.option(MyOptions)`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    title: ClassVar[str] = ""
    """The heading of the fields in the admin. Empty: the name of the feature."""
    permissions: ClassVar[Mapping[str, str]] = {}
    """The permission that a person needs to change a field, besides that to change agents."""

    def needed_middleware(self) -> Mapping[str, str]:
        """Return the middleware without which no run may be driven, each with its field.

        A version of the agent stores them: if the feature is removed, its runs fail.
        """
        return {}

    def named_tools(self) -> Iterable[NamedTool]:
        """Return the names of tools, and patterns with `*`, in the values."""
        return ()

    def check(self, spec: Any) -> None:
        """Raise `ValueError`, as `field: reason`, for values that no run can use.

        `spec` is the `AgentSpec` that is about to be stored.
        """


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


def options_of(values: Mapping[str, Any]) -> list[AgentOptions]:
    """Return the options of each feature with those of `values` that are its own.

    Raises `pydantic.ValidationError`.
    """
    return [
        kind.model_validate_json(
            json.dumps({name: values[name] for name in kind.model_fields if name in values})
        )
        for kind in option_classes()
    ]


def option_permissions() -> dict[str, str]:
    """Return the permissions of all options that need one."""
    return {name: needed for kind in option_classes() for name, needed in kind.permissions.items()}


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
