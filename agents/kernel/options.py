"""The options of an agent: the fields of its definition.

`agents.spec.OPTIONS` lists the classes of options that every agent has, and a feature lists its own
in its `options.OPTIONS`. Together they are the definition of an agent. Agent files and their JSON
schema, the form in the admin, the REST API, the Python API and each stored version have these
fields with the same names. A field needs no column and no migration: an agent stores the values
that differ from the defaults.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from agents.kernel.features import collect

Location = tuple[str | int, ...]
"""The place of a value in a definition: names of fields, and indexes of items from 0."""
Options = TypeVar("Options", bound="AgentOptions")
_CORE = "agents.spec"


@dataclass(frozen=True)
class Labels:
    """An annotation of a field with few values: the label of each value for people."""

    by_value: Mapping[Any, str]


@dataclass(frozen=True)
class Suggest:
    """Metadata of a text, or of a list of texts: the kind of names that forms suggest for it.

    People can also enter other names.
    """

    names: Literal["tools", "providers", "skills"]


@dataclass(frozen=True)
class FormHelp:
    """Metadata of a field: its help text in forms.

    Without it, forms show the description of the field, which is written for agent files.
    """

    text: str


def help_of(field: FieldInfo) -> str:
    """Return the help of a field in forms."""
    found = (each.text for each in field.metadata if isinstance(each, FormHelp))
    return next(found, field.description or "")


def labels_of(field: FieldInfo) -> dict[Any, str]:
    """Return the values of a field of type `Literal`, each with its label for people."""
    known = next((each.by_value for each in field.metadata if isinstance(each, Labels)), {})
    values = get_args(without_none(field.annotation)[0])
    return {value: known.get(value, str(value)) for value in values}


def without_none(annotation: Any) -> tuple[Any, bool]:
    """Return (the type without None and without `Annotated`, whether None is possible).

    A union of several types besides None is returned unchanged.
    """
    optional = False
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        optional = len(kinds) < len(get_args(annotation))
        annotation = kinds[0] if len(kinds) == 1 else annotation
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation, optional


class AgentOptions(BaseModel):
    """A group of fields of an agent's definition. Each has a type, a default and a description.

    A middleware reads them with `spec.option(MyOptions)`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    title: ClassVar[str] = ""
    """The heading of the fields in the admin. Classes with the same title share a heading.

    Empty: the name of the class.
    """
    permission: ClassVar[str] = ""
    """The permission that is needed to change the fields. Others can only see them."""
    listed: ClassVar[list[str] | None] = None
    """The fields that the REST API returns as fields of the agent; it returns no other fields.

    None: the API returns all of them in the field `options`.
    """

    def check(self, spec: Any) -> None:
        """Raise `agents.services.errors.InvalidRequest` if an agent cannot have these options.

        The message must start with the field's name. `spec` is the `agents.spec.AgentSpec` of the
        agent, with the options.
        """

    def pinned(self, agent: Any) -> dict[str, Any]:
        """Return the values that a version of `agent` stores for these options. Omit defaults."""
        return changed_values(self)

    @classmethod
    def restored(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of these options in a stored version. This reverses `pinned`."""
        return {name: spec[name] for name in cls.model_fields if name in spec}

    def needed_middleware(self) -> Mapping[str, str]:
        """Return the middleware that every run needs because of these options, each with its field.

        A version of the agent stores the names: if the feature is removed, the runs fail.
        """
        return {}

    def tool_names(self) -> Iterator[tuple[Location, str]]:
        """Yield (place, name) for each tool, or pattern of tools, that these options name."""
        return iter(())

    def offered_tools(self) -> Collection[str]:
        """Return the names of the tools that an agent has because of these options."""
        return ()


@lru_cache(maxsize=1)
def option_classes() -> tuple[type[AgentOptions], ...]:
    """Return the classes of options of every agent, then those of the installed features, in order.

    Raises `ImproperlyConfigured` for an invalid class, and for a name that is used twice.
    """
    found: dict[str, type[AgentOptions]] = {}
    classes = []
    core = [(_CORE, kind) for kind in import_module(_CORE).OPTIONS]
    of_features = [
        (f"{config.name}.options", kind) for config, kind in collect("options", "OPTIONS")
    ]
    for module, kind in (*core, *of_features):
        if not (isinstance(kind, type) and issubclass(kind, AgentOptions)):
            raise ImproperlyConfigured(
                f"{module}.OPTIONS must contain subclasses of AgentOptions, not {kind!r}."
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


@lru_cache(maxsize=1)
def definition_class() -> type[AgentOptions]:
    """Return the class of an agent's definition, which has the fields of all options."""
    # Reverse the classes, because Pydantic takes the fields of the last base first.
    bases = tuple(reversed(option_classes()))
    return create_model("AgentDefinition", __base__=bases)


def option_fields() -> dict[str, FieldInfo]:
    """Return the fields of all options by name."""
    return dict(definition_class().model_fields)


def is_option(name: str) -> bool:
    """Return whether `name` is an option of every agent or of an installed feature."""
    return name in definition_class().model_fields


@lru_cache(maxsize=1)
def _defaults() -> dict[str, Any]:
    return definition_class()().model_dump(mode="json")


def option_default(name: str) -> Any:
    """Return the default of one option, as JSON data. Raises `KeyError` for an unknown name."""
    return copy.deepcopy(_defaults()[name])


def validated_options(values: Mapping[str, Any]) -> AgentOptions:
    """Return the definition with `values`, which are JSON data.

    Raises `pydantic.ValidationError` with all errors, also for a name that no installed feature
    declares.
    """
    # Validate as JSON, so that a list is accepted for a tuple, but a number not for a text.
    return definition_class().model_validate_json(json.dumps(values), strict=True)


def tolerated_options(values: Mapping[str, Any]) -> AgentOptions:
    """Return the definition with the stored `values`, except unknown and invalid ones."""
    known = known_options(values)
    try:
        return validated_options(known)
    except ValidationError as error:
        wrong = {each["loc"][0] for each in error.errors(include_url=False)}
        return validated_options({name: known[name] for name in known if name not in wrong})


def part_of(definition: AgentOptions, kind: type[Options]) -> Options:
    """Return the part of `definition` that belongs to the class `kind`."""
    given = {name: getattr(definition, name) for name in kind.model_fields}
    return kind.model_construct(definition.model_fields_set & given.keys(), **given)


def changed_values(options: AgentOptions) -> dict[str, Any]:
    """Return the options that differ from their defaults, as JSON data."""
    fields = type(options).model_fields
    return {
        name: value
        for name, value in options.model_dump(mode="json", exclude_unset=True).items()
        if name in fields and getattr(options, name) != fields[name].get_default()
    }


def checked_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` as JSON data without defaults.

    Raises `pydantic.ValidationError` as `validated_options` does.
    """
    return changed_values(validated_options(values))


def json_value(value: Any) -> Any:
    """Return the value of an option as JSON data: a Decimal as a number, a tuple as a list."""
    if isinstance(value, Decimal):
        # Use a number without a point for whole dollars. The column's six digits fit a float.
        return int(value) if value == value.to_integral_value() else float(value)
    return list(value) if isinstance(value, tuple) else value


def known_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the stored `values` that are options now (`is_option`)."""
    fields = option_fields()
    return {name: value for name, value in values.items() if name in fields}


def without_known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the stored `values` that no installed feature has as an option.

    They stay stored.
    """
    fields = option_fields()
    return {name: value for name, value in values.items() if name not in fields}


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        for cached in (option_classes, definition_class, _defaults):
            cached.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.options")
