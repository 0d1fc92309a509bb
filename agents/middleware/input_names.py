"""The fields of an input that a tool reads: it ignores all others."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from pydantic import AliasChoices, BaseModel


def input_names(model: type[BaseModel]) -> frozenset[str] | None:
    """Return the names of the fields that `model` accepts, or None if it accepts any."""
    return _names(model)


@lru_cache(maxsize=512)
def _names(model: Hashable) -> frozenset[str] | None:
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    if model.model_config.get("extra") == "allow":
        return None
    return frozenset().union(*_groups(model))


def same_field(model: type[BaseModel]) -> tuple[frozenset[str], ...]:
    """Return the names of each field of `model`; all names in a set are the same field."""
    return _groups(model)


@lru_cache(maxsize=512)
def _groups(model: Hashable) -> tuple[frozenset[str], ...]:
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    by_name = bool(
        model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    )
    groups: list[frozenset[str]] = []
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        given = {choice for choice in choices if isinstance(choice, str)}
        if by_name or not given:
            given.add(name)
        groups.append(frozenset(given))
    return tuple(groups)
