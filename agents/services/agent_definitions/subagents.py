"""The subagents that a team defines for an agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from agents.models import Agent, Subagent
from agents.providers import registry
from agents.services.errors import InvalidRequest
from agents.spec import SubagentSpec

GENERAL = "general"
ALIASES = {"default": GENERAL, "general-purpose": GENERAL}
"""Other names of the general subagent. They are accepted, but not advertised."""
BUILT_IN_NAMES = frozenset({GENERAL, "explore", "plan"})
RESERVED_NAMES = BUILT_IN_NAMES | frozenset(ALIASES)
"""An agent can redefine only `general`, which replaces the built-in one."""
MAX_SUBAGENTS = 50
"""The limit of one agent: each subagent is a line of its prompt."""


def subagent_specs(
    agent: Agent, rows: Iterable[Subagent] | None = None
) -> tuple[SubagentSpec, ...]:
    """Return the agent's subagents, or `rows` in their place, as runs pin them.

    Raises `InvalidRequest` with the subagent and the invalid field.
    """
    if rows is None:  # an agent that is not stored has none and needs no query
        rows = () if agent._state.adding else agent.subagents.all()
    found = [_spec(row) for row in rows]
    names = [item.name for item in found]
    if len(found) > MAX_SUBAGENTS:
        raise InvalidRequest(f"subagents: {MAX_SUBAGENTS} at most.", code="invalid_agent")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidRequest(f"subagents: {twice[0]} is there twice.", code="invalid_agent")
    return tuple(sorted(found, key=lambda item: item.name))


def _spec(row: Subagent) -> SubagentSpec:
    if row.name in RESERVED_NAMES and row.name != GENERAL:
        known = ALIASES.get(row.name, row.name)
        raise InvalidRequest(
            f"subagents: {row.name} is a name of Vel's own subagent {known}: choose another.",
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


def set_subagents(agent: Agent, rows: Sequence[Subagent]) -> None:
    """Replace the agent's subagents with these. The caller has checked them."""
    there = {row.name: row.pk for row in agent.subagents.all()}
    names = {row.name for row in rows}
    agent.subagents.exclude(name__in=names).delete()
    for row in rows:
        row.pk = there.get(row.name)
        row.agent = agent
        row._state.adding = row.pk is None
        row.save()
