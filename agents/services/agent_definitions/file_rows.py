"""Conversion between an agent's rows and the data of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group

from agents.agent_files.shape import default_of, file_fields
from agents.kernel.options import json_value
from agents.kernel.relations import OwnRows, relations
from agents.models import Agent
from agents.services.errors import InvalidRequest

NAMED = ("groups", "approver_groups")
"""Fields of the file that name other rows, in addition to the relations of features."""


def file_data(agent: Agent) -> dict[str, Any]:
    """Return the data of the agent's file: in the order of `file_fields`, without defaults."""
    stored = not agent._state.adding
    of_features = {relation.name: relation for relation in relations()}
    data: dict[str, Any] = {}
    for name in file_fields():
        value: Any = []
        relation = of_features.get(name)
        if isinstance(relation, OwnRows):
            rows = sorted(relation.rows(agent), key=lambda row: str(row.name))
            value = [relation.in_file(row) for row in rows]
        elif relation is not None:
            value = relation.names(agent) if stored else []
        elif name in NAMED:
            value = _names(agent, name) if stored else []
        else:
            value = json_value(getattr(agent, name))
        if value != default_of(name):
            data[name] = value
    return data


def fill_fields(agent: Agent, data: Mapping[str, Any]) -> None:
    """Set the agent's own fields from a file's checked data, without storing them."""
    rows = {*NAMED, *(relation.name for relation in relations())}
    for name in file_fields():
        if name not in rows:
            setattr(agent, name, data.get(name, default_of(name)))


def related_rows(agent: Agent, data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the rows of features that a file's checked data names, by relation.

    Raises `InvalidRequest` for an unknown name.
    """
    found = {}
    for relation in relations():
        if isinstance(relation, OwnRows) and relation.name in data:
            found[relation.name] = relation.from_file(data[relation.name])
        elif relation.name in data:
            known, names = relation.named(agent), data[relation.name]
            _require(relation.name, names, known)
            found[relation.name] = [known[name] for name in names]
    return found


def groups_named(field: str, names: list[str]) -> list[Group]:
    """Return the groups with these names. Raises `InvalidRequest` for an unknown one."""
    there = {group.name: group for group in Group.objects.all()}
    _require(field, names, there)
    return [there[name] for name in names]


def _require(field: str, names: list[str], there: Mapping[str, Any]) -> None:
    for at, name in enumerate(names):
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            raise InvalidRequest(f"{field}.{at}: there is no {name!r} here; there are: {known}.")


def _names(agent: Agent, field: str) -> list[str]:
    return sorted(getattr(agent, field).values_list("name", flat=True))
