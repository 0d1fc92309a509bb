"""Between an agent's rows and the data of its file."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import Group

from agents.agent_files.shape import AgentFile, SubagentFile, default_of, file_fields
from agents.kernel.options import checked_options, option_fields, without_known
from agents.kernel.relations import relations
from agents.models import Agent, Subagent
from agents.services.errors import InvalidRequest

NAMED = ("groups", "approver_groups")
"""Fields of the file that name other rows, beside the relations of features."""
PLAIN = tuple(name for name in AgentFile.model_fields if name not in (*NAMED, "subagents"))
"""Fields of the file that are a column of the agent."""


def file_data(agent: Agent) -> dict[str, Any]:
    """The agent as its file has it: in the order of `file_fields`, without what is default."""
    stored = not agent._state.adding
    of_features = {relation.name: relation for relation in relations()}
    data: dict[str, Any] = {}
    for name in file_fields():
        if name == "subagents":
            rows = agent.subagents.order_by("name") if stored else ()
            value: Any = [_without_defaults(row, SubagentFile) for row in rows]
        elif name in of_features:
            value = of_features[name].names(agent) if stored else []
        elif name in NAMED:
            value = _names(agent, name) if stored else []
        elif name in AgentFile.model_fields:
            value = _plain(getattr(agent, name))
        else:
            value = agent.options.get(name, default_of(name))
        if value != default_of(name):
            data[name] = value
    return data


def fill_columns(agent: Agent, data: Mapping[str, Any]) -> None:
    """Set the agent's own fields from a file's checked data. Nothing is stored."""
    for name in PLAIN:
        setattr(agent, name, _column(name, data.get(name, default_of(name))))
    given = checked_options({name: data[name] for name in option_fields() if name in data})
    agent.options = {**without_known(agent.options), **given}


def subagent_rows(data: Mapping[str, Any]) -> list[Subagent]:
    """The subagents of a file's checked data, not stored."""
    return [
        Subagent(**{name: _column(name, value) for name, value in each.items()})
        for each in data.get("subagents", ())
    ]


def related_rows(agent: Agent, data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the rows of features that a file's checked data names, by relation.

    Raises `InvalidRequest` for a name of none.
    """
    found = {}
    for relation in relations():
        if relation.name in data:
            known, names = relation.named(agent), data[relation.name]
            _require(relation.name, names, known)
            found[relation.name] = [known[name] for name in names]
    return found


def groups_named(field: str, names: list[str]) -> list[Group]:
    """Raises `InvalidRequest` for a name of no group."""
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


def _without_defaults(row: Subagent, kind: type[SubagentFile]) -> dict[str, Any]:
    found = {}
    for name, field in kind.model_fields.items():
        value = _plain(getattr(row, name))
        if field.is_required() or value != field.get_default(call_default_factory=True):
            found[name] = value
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        # Whole dollars without a point; the six digits of the column fit a float.
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _column(name: str, value: Any) -> Any:
    return Decimal(str(value)) if name == "max_cost" and value is not None else value
