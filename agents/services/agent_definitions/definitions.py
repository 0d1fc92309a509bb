"""Definitions of agents as data: reading, changing some fields, and restoring a version.

A change is an import of the agent's file with these fields changed: it has the same checks, needs
the same permissions and is one version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from agents.agent_files.shape import default_of, file_fields
from agents.agent_files.writing import write_document
from agents.kernel.options import option_classes
from agents.kernel.relations import relations
from agents.models import Agent, AgentVersion
from agents.selectors.visible import agent_named, agents_for
from agents.services.agent_definitions.actions import (
    default_model,
    default_provider,
    save_agent,
    set_active,
)
from agents.services.agent_definitions.files import IMPORTED, carry_out_import, file_data
from agents.services.agent_definitions.rights import (
    check_may_define,
    check_may_define_some,
    may_change_definition,
    may_read_definition,
)
from agents.services.agent_definitions.templates import (
    create_from_template,
    free_slug,
    template_named,
)
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound

_USERNAME = get_user_model().USERNAME_FIELD


class StaleDefinition(Conflict):
    """The agent's definition has changed since the caller read it."""

    code = "stale"
    http_status = 412


def find_agent(user: AbstractBaseUser, agent_id: str, *, defined: bool = False) -> Agent:
    """Return an agent by its id or slug that `user` may use, or whose definition they may read.

    `defined`: only the latter. Raises `NotFound`, and `NotAllowed` for an agent that they may only
    use.
    """
    agent = agent_named(Agent.objects.all(), agent_id)
    reads = agent is not None and may_read_definition(user, agent)
    uses = agent is not None and agents_for(user).filter(pk=agent.pk).exists()
    if agent is None or not (reads or uses):
        raise NotFound(f"There is no agent {agent_id!r} that you may see.", code="unknown_agent")
    if defined and not reads:
        raise NotAllowed("Only its owner and users who can view agents can read its definition.")
    return agent


def whole_definition(agent: Agent) -> dict[str, Any]:
    """Return all fields of the agent's file and its owner, as JSON data."""
    data = file_data(agent)
    fields = {name: data.get(name, default_of(name)) for name in file_fields()}
    return {**fields, "owner": _name(agent.owner)}


def definition_tag(agent: Agent) -> str:
    """Return a text that changes with the definition of the agent or its owner."""
    whole = write_document({**file_data(agent), "owner": _name(agent.owner)})
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


@transaction.atomic
def create_agent(
    fields: Mapping[str, Any],
    *,
    template: str = "",
    by: AbstractBaseUser,
    known_tools: Collection[str],
) -> Agent:
    """Create an agent of `by` from fields of a file, in addition to those of a template.

    An empty slug is derived from the name.

    Args:
        fields: Values by the names of `file_fields`.
        template: The slug of the template; "" for none.
        by: The owner of the new agent.
        known_tools: The tools that an agent may name.

    Raises:
        Conflict: Another agent has the slug.
        NotFound: There is no such template.
        InvalidAgentFile: A field is invalid.
        NotAllowed: `by` may not create such an agent.
    """
    if template:
        template_named(template)
    check_may_define_some(by)
    rest = dict(fields)
    name, slug = rest.pop("name", ""), rest.pop("slug", "")
    if slug and Agent.objects.filter(slug=slug).exists():
        raise Conflict(f"There is an agent {slug!r}: choose another slug.", code="slug_taken")
    if template:
        agent = create_from_template(template, name=name, by=by, known_tools=known_tools, slug=slug)
        return _import({**file_data(agent), **rest}, by, known_tools) if rest else agent
    check_may_define(by, is_new=True)
    return _import({"name": name, "slug": slug or free_slug(name), **rest}, by, known_tools)


@transaction.atomic
def change_definition(
    agent_id: str,
    fields: Mapping[str, Any],
    *,
    by: AbstractBaseUser,
    known_tools: Collection[str],
    matches: str = "",
    note: str = IMPORTED,
) -> Agent:
    """Change these fields of an agent; the others stay.

    Args:
        agent_id: The id of an agent that exists.
        fields: Values by the names of `file_fields`, and `owner`: a username or None.
        by: The user who changes the agent.
        known_tools: The tools that an agent may name.
        matches: The definitions that the caller accepts, in the form of HTTP's `If-Match`: tags of
            `definition_tag` in double quotes. Empty or `*`: any.
        note: A text for the audit log.

    Raises:
        StaleDefinition: The definition is not one of `matches`.
        Conflict: Another agent has the slug.
        InvalidRequest: There is no user with the name in `owner`. `InvalidAgentFile`: another field
            is invalid.
        NotAllowed: `by` may not make this change.
    """
    agent = _locked(agent_id, matches)
    if not may_change_definition(by, agent):
        check_may_define(by, is_new=False)
    rest = dict(fields)
    slug, owner = rest.pop("slug", agent.slug), _name(agent.owner)
    owner = rest.pop("owner", owner)
    if (slug, owner) != (agent.slug, _name(agent.owner)):
        _identify(agent, slug, owner, by)
    return _import({**file_data(agent), **rest, "slug": agent.slug}, by, known_tools, note)


def _identify(agent: Agent, slug: str, owner: str | None, by: AbstractBaseUser) -> None:
    """Give an agent another slug or owner, as in the admin."""
    check_may_define(by, is_new=False, slug=slug)
    if slug != agent.slug and Agent.objects.filter(slug=slug).exists():
        raise Conflict(f"There is an agent {slug!r}: choose another slug.", code="slug_taken")
    if owner != _name(agent.owner):
        # Its owner controls its memory, so this is for people with access to the admin.
        if not getattr(by, "is_staff", False):
            raise NotAllowed("Only staff can change the owner of an agent, as in the admin.")
        users = get_user_model().objects
        person = None if owner is None else users.filter(**{_USERNAME: owner}).first()
        if owner is not None and person is None:
            raise InvalidRequest(f"owner: there is no user {owner!r}.")
        agent.owner = person
    agent.slug = slug
    save_agent(agent, by_id=by.pk)


def _name(user: Any) -> str | None:
    return None if user is None else str(user.get_username())


@transaction.atomic
def archive_agent(agent_id: str, *, by: AbstractBaseUser, matches: str = "") -> None:
    """Deactivate an agent, so that it starts no runs. Its definition and its runs stay.

    `matches` is that of `change_definition`. Raises `NotAllowed` and `StaleDefinition`.
    """
    _locked(agent_id, matches)
    set_active(agent_id, False, by=by)


def restore_version(
    agent_id: str,
    number: int,
    *,
    by: AbstractBaseUser,
    known_tools: Collection[str],
    matches: str = "",
    note: str = IMPORTED,
) -> Agent:
    """Give an agent the definition of one of its versions, as a new version.

    Its slug, its description and the people who may use it stay. The other arguments are
    those of `change_definition`. Raises `NotFound`, and the exceptions of `change_definition`.
    """
    version = version_of(agent_id, number)
    fields = definition_of(version)
    return change_definition(
        agent_id, fields, by=by, known_tools=known_tools, matches=matches, note=note
    )


def version_of(agent_id: str, number: int) -> AgentVersion:
    """Return a version of an agent. Raises `NotFound`."""
    rows = AgentVersion.objects.select_related("agent", "created_by")
    version = rows.filter(agent=agent_id, number=number).first()
    if version is None:
        raise NotFound(f"The agent has no version {number}.")
    return version


def definition_of(version: AgentVersion) -> dict[str, Any]:
    """Return the fields of the agent's file that a version contains, as JSON data."""
    spec, agent = version.spec, version.agent
    found = {"name": spec["name"]}
    for kind in option_classes():
        found |= {name: default_of(name) for name in kind.model_fields}
        found |= kind.restored(spec)
    for relation in relations():
        found[relation.name] = spec.get(relation.name, [])
    found["output_schema"] = json.loads(spec.get("output_schema") or "null")
    # A version has the effective ones. An agent without its own follows the settings.
    provider = spec["provider"]
    if not agent.model and spec["model"] == default_model(provider):
        found["model"] = ""
    if not agent.provider and provider == default_provider():
        found["provider"] = ""
    return found


def _locked(agent_id: str, matches: str) -> Agent:
    agent = Agent.objects.select_for_update(of=("self",)).get(pk=agent_id)
    if matches and matches.strip() != "*" and f'"{definition_tag(agent)}"' not in matches:
        raise StaleDefinition("The agent has changed since you read it: read it again.")
    return agent


def _import(
    data: Mapping[str, Any],
    by: AbstractBaseUser,
    known_tools: Collection[str],
    note: str = IMPORTED,
) -> Agent:
    whole = {name: value for name, value in data.items() if value != default_of(name)}
    return carry_out_import(write_document(whole), by=by, known_tools=known_tools, note=note)[0]
