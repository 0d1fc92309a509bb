"""Tools with which an agent builds agents: list_agent_parts, check_agent, create_agent.

create_agent requires approval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth import get_user_model
from pydantic import BaseModel, Field

from agents.kernel.features import AGENTS, integrations
from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.relations import OwnRows, relations
from agents.middleware.base import Middleware, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.services.errors import Conflict, NotAllowed, ServiceError
from agents.spec import AgentSpec

with lazy_modules:
    # Imported at first use: agent files take 40 ms to import, and few agents build others.
    from agents.agent_templates import catalogue
    from agents.services.agent_definitions import files as agent_files


MAX_DEFINITION = 100_000
_AS_YAML = "An agent's file as YAML: name, slug, description, system_prompt, …"


class NoInput(BaseModel):
    pass


class DefinitionInput(BaseModel):
    definition: str = Field(min_length=1, max_length=MAX_DEFINITION, description=_AS_YAML)


class BuilderMiddleware(Middleware):
    """Offers the tools for building agents.

    `known_tools` returns the descriptions of all tools by name.
    """

    name = "builder"

    def __init__(self, known_tools: Callable[[], Mapping[str, str]]) -> None:
        self._known_tools = known_tools

    def wanted_by(self, spec: AgentSpec) -> str:
        return "integrations" if AGENTS in spec.integrations else ""

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        if AGENTS not in spec.integrations:
            return []
        return [
            Tool(
                "list_agent_parts",
                "List parts of agents: templates, tools, databases, services.",
                NoInput,
                self._list,
                Effect.READ,
            ),
            Tool(
                "check_agent",
                "Check the definition of a new agent; does not create it.",
                DefinitionInput,
                self._check,
                Effect.READ,
            ),
            Tool(
                "create_agent",
                "Make a new agent. A person sees the definition first and decides.",
                DefinitionInput,
                self._create,
                Effect.EXTERNAL,
            ),
        ]

    async def _list(self, context: ToolContext, given: NoInput) -> ToolResult:
        related = await context.in_database(_related, context.owner_id)
        return ToolResult(
            {
                "templates": [
                    {"slug": template.slug, "does": template.description, "file": template.data}
                    for template in catalogue.agent_templates().values()
                ],
                "tools": dict(self._known_tools()),
                **related,
                "integrations": [each.name for each in integrations() if each.name != AGENTS],
            }
        )

    async def _check(self, context: ToolContext, given: DefinitionInput) -> ToolResult:
        try:
            after = await context.in_database(self._plan, context.owner_id, given.definition)
        except ServiceError as problem:
            return _told(problem)
        return ToolResult(f"It can be made as it is. It would be:\n\n{after}")

    async def _create(self, context: ToolContext, given: DefinitionInput) -> ToolResult:
        try:
            made = await context.in_database(self._make, context.owner_id, given.definition)
        except ServiceError as problem:
            return _told(problem)
        return ToolResult({"created": True, **made})

    def _plan(self, owner_id: int, text: str) -> str:
        plan = agent_files.plan_import(
            text, by=_user(owner_id), known_tools=self._known_tools().keys()
        )
        if not plan.is_new:
            raise _taken(plan.slug)
        return str(plan.after)

    def _make(self, owner_id: int, text: str) -> dict[str, str]:
        agent, plan = agent_files.carry_out_import(
            text, by=_user(owner_id), known_tools=self._known_tools().keys()
        )
        if not plan.is_new:  # the error rolls the transaction back
            raise _taken(plan.slug)
        return {"name": agent.name, "slug": agent.slug}


def _related(owner_id: int) -> dict[str, list[str]]:
    """Return the names of rows that the person may assign to an agent, by relation."""
    user = _user(owner_id)
    return {
        relation.name: relation.offered(user)
        for relation in relations()
        if not isinstance(relation, OwnRows)
    }


def _user(owner_id: int) -> Any:
    return get_user_model().objects.get(pk=owner_id)


def _taken(slug: str) -> Conflict:
    return Conflict(f"slug: there is an agent {slug!r} already: choose another slug.")


def _told(problem: ServiceError) -> ToolResult:
    if isinstance(problem, NotAllowed):
        return error(
            f"{problem.message} The user can give the definition to an operator, who imports it.",
            problem.code,
        )
    return error(problem.message, problem.code)
