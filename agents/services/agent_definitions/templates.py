"""Agents from templates, and the agent that builds agents in a conversation."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from agents.agent_templates.catalogue import AgentTemplate, agent_templates, builder_prompt
from agents.kernel.options import known_options
from agents.models import Agent
from agents.services.agent_definitions.actions import save_agent
from agents.services.agent_definitions.files import carry_out_import
from agents.services.agent_definitions.rights import RESERVED_SLUGS
from agents.services.errors import NotFound

BUILDER_SLUG = "agent-builder"
MAX_SLUG = 100


def template_named(slug: str) -> AgentTemplate:
    """Return a template. Raises `NotFound` with the list of the known ones."""
    found = agent_templates().get(slug)
    if found is None:
        raise NotFound(f"There is no template {slug!r}; there are {', '.join(agent_templates())}.")
    return found


@transaction.atomic
def create_from_template(
    template: str,
    *,
    name: str = "",
    by: AbstractBaseUser,
    known_tools: Collection[str],
    slug: str = "",
    ask_before: Collection[str] = (),
) -> Agent:
    """Create an agent of `by` from a template. An empty `name` means the template's own.

    An empty slug is derived from the name, with a number if another agent has it. The caller checks
    that no agent has a given slug: that agent would be changed. Calls of tools in `ask_before`
    require approval; `by` needs the permission to set this. Raises `NotFound`, `NotAllowed` and
    `InvalidAgentFile`.
    """
    found = template_named(template)
    name = name.strip() or found.name
    text = found.file(name=name, slug=slug or free_slug(name), ask_before=ask_before)
    return carry_out_import(text, by=by, known_tools=known_tools)[0]


def free_slug(name: str) -> str:
    """Return a slug derived from `name` that no agent has now."""
    base = slugify(name)[: MAX_SLUG - 5].strip("-_") or "agent"
    taken = set(Agent.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    taken |= RESERVED_SLUGS
    if base not in taken:
        return base
    return next(
        slug for number in range(2, len(taken) + 3) if (slug := f"{base}-{number}") not in taken
    )


def ensure_builder_agent() -> Agent:
    """Return the agent that builds agents, and create it if necessary. Everybody may use it.

    It can create only agents that its user may create. An existing one is not changed.
    """
    agent = Agent.objects.filter(slug=BUILDER_SLUG).first()
    if agent is not None:
        return agent
    definition = {
        "system_prompt": builder_prompt(),
        "integrations": ["agents"],
        "tools": ["list_agent_parts", "check_agent", "create_agent", "write_todos"],
        "sandbox": False,
        "builtin_skills": False,
        "general_subagent": False,
        "max_turns": 60,
    }
    try:
        with transaction.atomic():
            return save_agent(
                Agent(
                    name="Agent builder",
                    slug=BUILDER_SLUG,
                    description="Builds an agent with you, by asking what it is for.",
                    everyone=True,
                    **known_options(definition),
                )
            )
    except IntegrityError:  # another process made it at the same moment
        return Agent.objects.get(slug=BUILDER_SLUG)
