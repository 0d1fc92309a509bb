"""Validation of a tool's input. Needs no Django."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agents.custom.signature import misfit

Model = TypeVar("Model", bound=BaseModel)


def has_nul(value: Any) -> bool:
    """Return whether a text in a JSON value contains the character NUL."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(has_nul(one) for pair in value.items() for one in pair)
    return isinstance(value, list | tuple) and any(map(has_nul, value))


def fitting_input(name: str, model: type[Model], given: Any) -> Model | str:
    """Return the validated input of the tool `name`, or an error message for the model.

    Null for an optional field means its default, because models send null for fields without a
    value.
    """
    if has_nul(given):
        return "The input holds a NUL character, which is not possible here."
    try:
        return model.model_validate(given)
    except ValidationError as error:
        without = _without_nulls(model, given, error)
        if without is not None:
            return fitting_input(name, model, without)
        return misfit(name, error)


def _without_nulls(
    model: type[BaseModel], given: Any, error: ValidationError
) -> dict[str, Any] | None:
    """Return the input without nulls that `error` reports in optional fields.

    Returns None if there are no such nulls.
    """
    if not isinstance(given, Mapping):
        return None
    wrong = {item["loc"][0] for item in error.errors() if len(item["loc"]) == 1}
    required = {
        name
        for field, info in model.model_fields.items()
        if info.is_required()
        for name in (field, info.alias, *_choices(info.validation_alias))
    }
    nulls = {name for name in wrong if given.get(name, 0) is None} - required
    return {name: value for name, value in given.items() if name not in nulls} if nulls else None


def _choices(alias: Any) -> list[Any]:
    return list(getattr(alias, "choices", [alias]))
