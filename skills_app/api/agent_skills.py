"""Endpoints for the skills of one agent: change its own skills, enable and disable shared ones."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import person
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.named_agent import agent_of
from agents.doors.rest.operations import IDEMPOTENCY_KEY, operation
from agents.doors.rest.serializers import read_body, read_query
from agents.models import Agent, TokenScope
from agents.services.errors import Conflict, NotFound
from skills_app.actions.library import import_skill, set_enabled, sync_shared_skills
from skills_app.actions.own_skills import create_own_skill, remove_skill, update_own_skill
from skills_app.actions.uploads import origin_of
from skills_app.api.library import UploadView, is_form, read_form
from skills_app.api.serializers import (
    AgentSkillsQuery,
    AgentUploadForm,
    OwnSkillBody,
    SkillChangeBody,
    scope_word,
    show_agent_skill,
)
from skills_app.api.shapes import AgentSkillsShape, OneAgentSkillShape
from skills_app.queries.packages import instructions_of, waiting_trusts
from skills_app.queries.skills import AgentSkillRow, agent_skills

SOURCE = "api"


class AgentSkills(UploadView):
    """`GET` and `POST /agents/{id}/skills`: the texts of a skill, or a form with a package."""

    # The scope is not `approve`: a token that decides requests need not be able to write directly.
    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.MANAGE}

    @operation(
        "list_agent_skills",
        "List an agent's skills",
        query=AgentSkillsQuery,
        answer=AgentSkillsShape,
    )
    def get(self, request: Request, agent_id: str) -> Response:
        agent = agent_of(person(request), agent_id)
        query = read_query(AgentSkillsQuery, request)
        sync_shared_skills()
        rows = [row for row in agent_skills(agent) if _is_asked(row, query)]
        return Response({"skills": show_rows(rows)})

    @operation(
        "create_agent_skill",
        "Create an agent's own skill",
        body=OwnSkillBody,
        form=AgentUploadForm,
        answers={201: OneAgentSkillShape},
        errors=(409,),
        headers=(IDEMPOTENCY_KEY,),
    )
    @idempotent
    def post(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        agent = agent_of(user, agent_id)
        if is_form(request):
            package, _ = read_form(AgentUploadForm, request)
            origin = origin_of(request.FILES["file"])
            made = import_skill(package, by=user, source=SOURCE, origin=origin, agent=agent)
            skill_id = made.version.skill_id
        else:
            skill_id = create_own_skill(agent, **read_body(OwnSkillBody, request), by=user).pk
        return Response({"skill": show_one(agent, skill_id)}, status=201)


class OneAgentSkill(UploadView):
    """`GET`, `PUT`, `PATCH` and `DELETE /agents/{id}/skills/{skill}`"""

    scopes: ClassVar = {
        "GET": TokenScope.READ,
        "PUT": TokenScope.MANAGE,
        "PATCH": TokenScope.MANAGE,
        "DELETE": TokenScope.MANAGE,
    }

    @operation("get_agent_skill", "Read an agent's skill", answer=OneAgentSkillShape)
    def get(self, request: Request, agent_id: str, skill_id: str) -> Response:
        agent, row = _found(person(request), agent_id, skill_id)
        return Response({"skill": show_one(agent, row.skill.pk)})

    @operation(
        "put_agent_skill",
        "Change an agent's skill",
        body=SkillChangeBody,
        answer=OneAgentSkillShape,
        errors=(409,),
    )
    def put(self, request: Request, agent_id: str, skill_id: str) -> Response:
        user = person(request)
        agent, row = _found(user, agent_id, skill_id)
        texts = read_body(SkillChangeBody, request)
        enabled, base = texts.pop("enabled", None), texts.pop("base_version", None)
        if texts and row.skill.agent_id != agent.pk:
            raise Conflict(
                f"{row.skill.name} is shared ({scope_word(row.skill)}) and not this agent's to "
                "change: turn it off with enabled, or make an own skill under another name.",
                code="shared_skill",
            )
        with transaction.atomic():
            if texts:
                update_own_skill(agent, row.skill.pk, by=user, base_version=base, **texts)
            if enabled is not None:
                set_enabled(agent, row.skill.pk, enabled, by=user)
        return Response({"skill": show_one(agent, row.skill.pk)})

    @operation(
        "patch_agent_skill",
        "Change an agent's skill",
        body=SkillChangeBody,
        answer=OneAgentSkillShape,
        errors=(409,),
    )
    def patch(self, request: Request, agent_id: str, skill_id: str) -> Response:
        """Do the same as `PUT`, which also keeps values that the body does not name."""
        return self.put(request, agent_id, skill_id)

    @operation(
        "delete_agent_skill", "Delete or turn off a skill", answers={204: None}, errors=(409,)
    )
    def delete(self, request: Request, agent_id: str, skill_id: str) -> Response:
        user = person(request)
        agent, row = _found(user, agent_id, skill_id)
        remove_skill(agent, row.skill.pk, by=user)
        return Response(status=204)


def show_rows(rows: list[AgentSkillRow]) -> list[dict[str, Any]]:
    bodies = instructions_of(row.version.pk for row in rows if row.version)
    trusts = waiting_trusts(row.skill for row in rows)
    return [
        show_agent_skill(
            row,
            bodies.get(row.version.pk, "") if row.version else "",
            trusts.get(row.skill.pk),
        )
        for row in rows
    ]


def show_one(agent: Agent, skill_id: int) -> dict[str, Any]:
    """Return the agent's skill with this id, as it is now."""
    return show_rows([row for row in agent_skills(agent) if row.skill.pk == skill_id])[0]


def _found(user: AbstractBaseUser, agent_id: str, skill_id: str) -> tuple[Agent, AgentSkillRow]:
    agent = agent_of(user, agent_id)
    for row in agent_skills(agent):
        if str(row.skill.pk) == skill_id:
            return agent, row
    raise NotFound(f"{agent.name} has no skill {skill_id!r}.", code="unknown_skill")


def _is_asked(row: AgentSkillRow, query: dict[str, Any]) -> bool:
    if query.get("scope") not in (None, scope_word(row.skill)):
        return False
    return "enabled" not in query or row.enabled == (query["enabled"] == "true")
