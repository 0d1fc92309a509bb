"""The field `subagents` of agents: the subagents that a team defines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.forms.models import model_to_dict
from pydantic import ValidationError

from agents.features.subagents.models import Subagent
from agents.features.subagents.types import ALIASES
from agents.kernel.options import json_value
from agents.kernel.relations import OwnRows
from agents.models import Agent
from agents.providers import registry
from agents.services.agent_definitions.script_files import check_script
from agents.services.errors import InvalidRequest
from agents.spec import SubagentSpec

MAX_SUBAGENTS = 50
"""The limit of one agent: each subagent is a line of its prompt."""


class Subagents(OwnRows):
    name = "subagents"
    title = "Subagents"
    help_text = (
        "Subagents that you define, in addition to general, explore and plan "
        "(docs/guides/subagents.md). One with such a name replaces the built-in one."
    )
    item = SubagentSpec

    def copied(self, agent: Agent) -> list[Subagent]:
        """Return copies. Raises `InvalidRequest` for a script that is not allowed."""
        own = ("id", "agent")
        fields = [field.name for field in Subagent._meta.concrete_fields if field.name not in own]
        rows = list(self.rows(agent))
        for row in rows:
            check_script(row.model)
        return [Subagent(**{name: getattr(row, name) for name in fields}) for row in rows]

    def fields(self, rows: Sequence[Subagent]) -> dict[str, Any]:
        found = subagent_specs(rows)
        return {self.name: [spec.model_dump(mode="json") for spec in found]} if found else {}

    def state(self, rows: Sequence[Subagent]) -> dict[str, Any]:
        return {row.name: _state(row) for row in rows}

    def set(self, agent: Agent, rows: Sequence[Subagent]) -> None:
        there = {row.name: row.pk for row in self.rows(agent)}
        names = {row.name for row in rows}
        Subagent.objects.filter(agent=agent).exclude(name__in=names).delete()
        for row in rows:
            row.pk = there.get(row.name)
            row.agent = agent
            row._state.adding = row.pk is None
            row.save()

    def in_file(self, row: Subagent) -> dict[str, Any]:
        found = {}
        for name, field in SubagentSpec.model_fields.items():
            value = json_value(getattr(row, name))
            default = None if field.is_required() else json_value(field.get_default())
            if value != default:
                found[name] = value
        return found

    def from_file(self, values: Sequence[Mapping[str, Any]]) -> list[Subagent]:
        rows = [Subagent(**each) for each in values]
        for row in rows:
            if row.max_cost is not None:
                row.max_cost = Decimal(str(row.max_cost))
        return rows


def _state(row: Subagent) -> dict[str, Any]:
    values = model_to_dict(row, exclude=["id", "agent", "name"])
    return {name: value for name, value in values.items() if value not in (None, "", [])}


def subagent_specs(rows: Iterable[Subagent]) -> list[SubagentSpec]:
    """Return subagents as runs pin them, sorted by name.

    Raises `InvalidRequest` with the subagent and the invalid field.
    """
    found = [_spec(row) for row in rows]
    names = [item.name for item in found]
    if len(found) > MAX_SUBAGENTS:
        raise InvalidRequest(f"subagents: {MAX_SUBAGENTS} at most.", code="invalid_agent")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidRequest(f"subagents: {twice[0]} is listed twice.", code="invalid_agent")
    return sorted(found, key=lambda item: item.name)


def _spec(row: Subagent) -> SubagentSpec:
    if row.name in ALIASES:
        raise InvalidRequest(
            f"subagents: {row.name} is another name of {ALIASES[row.name]}: use that name to "
            "replace it.",
            code="invalid_agent",
        )
    try:
        return SubagentSpec(
            name=row.name,
            description=" ".join(row.description.split()),
            system_prompt=row.system_prompt,
            provider=row.provider,
            model=row.model or (registry.default_model(row.provider) if row.provider else ""),
            tools=row.tools,
            skills=row.skills,
            read_only=row.read_only,
            max_turns=row.max_turns,
            max_tokens=row.max_tokens,
            max_cost=float(row.max_cost) if row.max_cost is not None else None,
            max_seconds=row.max_seconds,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise InvalidRequest(
            f"subagents: {row.name or 'one'}: {location}: {first['msg']}", code="invalid_agent"
        ) from None


RELATIONS = (Subagents(),)
