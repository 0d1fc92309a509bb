"""Endpoints for the agents that a person can use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db.models import OuterRef, Subquery
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.agent_templates.catalogue import AgentTemplate, agent_templates
from agents.api.serializers.agents import (
    AGENT_ORDER,
    AgentDetailShape,
    AgentListQuery,
    AgentShape,
)
from agents.api.serializers.definitions import (
    AgentBody,
    DefinitionShape,
    NewAgentBody,
    VersionDetailShape,
    VersionShape,
)
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.operations import ETAG, IDEMPOTENCY_KEY, IF_MATCH, LOCATION, Page, operation
from agents.doors.rest.pagination import ordered_page, page_of
from agents.doors.rest.serializers import PageQuery, StrictSerializer, read_body, read_query
from agents.middleware.registry import known_tool_names
from agents.models import Agent, AgentVersion, TokenScope
from agents.selectors.visible import agents_for, definitions_for
from agents.services.agent_definitions.definitions import (
    archive_agent,
    change_definition,
    create_agent,
    definition_tag,
    find_agent,
    restore_version,
    version_of,
    whole_definition,
)
from agents.services.agent_definitions.files import InvalidAgentFile
from agents.services.agent_definitions.rights import may_read_definition
from agents.services.erasure.agents import erase_agent, use_of_agent


class TemplateShape(serializers.Serializer[AgentTemplate]):
    """A template. `needs` lists the resources that an operator should provide, or is empty."""

    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    needs = serializers.CharField(allow_blank=True)


class TemplatesShape(serializers.Serializer[object]):
    results = TemplateShape(many=True)


class AgentTemplates(ApiView):
    """The endpoint `GET /agent-templates`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_agent_templates",
        "List the templates for new agents",
        query=StrictSerializer,
        answer=TemplatesShape,
    )
    def get(self, request: Request) -> Response:
        read_query(StrictSerializer, request)
        return Response(
            {"results": [TemplateShape(each).data for each in agent_templates().values()]}
        )


class Agents(ApiView):
    """The endpoints `GET /agents` and `POST /agents`."""

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.MANAGE}

    @operation(
        "list_agents",
        "List agents",
        query=AgentListQuery,
        answer=Page(AgentShape),
        description="Those that you may use; with `of=defined` those whose definition you may "
        "read, also archived ones.",
    )
    def get(self, request: Request) -> Response:
        query, user = read_query(AgentListQuery, request), person(request)
        rows = agents_for(user) if query["of"] == "usable" else definitions_for(user)
        return ordered_page(rows, AgentShape().to_representation, query, AGENT_ORDER)

    @idempotent
    @operation(
        "create_agent",
        "Create an agent",
        body=NewAgentBody,
        answers={201: AgentDetailShape},
        errors=(404, 409),
        headers=(IDEMPOTENCY_KEY, LOCATION, ETAG),
        description="From a template, from fields of an agent file, or from a template with other "
        "fields. An empty `name` is the name of the template; without a `slug`, it is derived from "
        "the name.",
    )
    def post(self, request: Request) -> Response:
        body, user = read_body(NewAgentBody, request), person(request)
        template = body.pop("template")
        if not template and not body["name"]:
            raise ValidationError({"name": ["Give a name, or a template."]})
        with _at_fields():
            agent = create_agent(body, template=template, by=user, known_tools=known_tool_names())
        answer = _shown(agent, status=201)
        answer["Location"] = f"{request.path}/{agent.pk}"
        return answer


class OneAgent(ApiView):
    """The endpoints `GET`, `PATCH` and `DELETE /agents/{id}`. The id can be the slug."""

    scopes: ClassVar = {
        "GET": TokenScope.READ,
        "PATCH": TokenScope.MANAGE,
        "DELETE": TokenScope.MANAGE,
    }

    @operation("get_agent", "Read an agent", answer=AgentDetailShape, headers=(ETAG,))
    def get(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        agent = find_agent(user, agent_id)
        shown = _shown(agent)
        if not may_read_definition(user, agent):
            del shown["ETag"]  # it would confirm a guess of the prompt
        return shown

    @operation(
        "change_agent",
        "Change an agent",
        body=AgentBody,
        answer=AgentDetailShape,
        errors=(409, 412),
        headers=(IF_MATCH, ETAG),
        description="The fields are those of an agent file (docs/guides/agent-files.md). "
        "Absent ones do not change. The change is one version. `is_active` true brings an archived "
        "agent back.",
    )
    def patch(self, request: Request, agent_id: str) -> Response:
        body, user = read_body(AgentBody, request), person(request)
        agent = find_agent(user, agent_id)
        with _at_fields():
            changed = change_definition(
                agent.pk,
                body,
                by=user,
                known_tools=known_tool_names(),
                matches=request.headers.get("If-Match", ""),
            )
        return _shown(changed)

    @operation(
        "archive_agent",
        "Archive an agent",
        answers={204: None},
        errors=(409, 412),
        headers=(IF_MATCH,),
        description="An archived agent starts no new runs. Its definition, runs and memory stay.",
    )
    def delete(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        agent = find_agent(user, agent_id)
        archive_agent(agent.pk, by=user, matches=request.headers.get("If-Match", ""))
        return Response(status=204)


class ErasedAgentShape(serializers.Serializer[Any]):
    """The progress of an erasure."""

    conversations = serializers.IntegerField(help_text="Conversations that this request erases.")
    is_erased = serializers.BooleanField(
        help_text="False while files on other machines remain. Send the request again."
    )


class EraseAgent(ApiView):
    """The endpoint `POST /agents/{id}/erase`"""

    scopes: ClassVar = {"POST": TokenScope.ADMIN}

    @operation(
        "erase_agent",
        "Erase an archived agent with its conversations",
        answer=ErasedAgentShape,
        errors=(409,),
        description="Also its memory, its own skills and its versions. This cannot be undone.",
    )
    def post(self, request: Request, agent_id: str) -> Response:
        read_query(StrictSerializer, request)
        user = person(request)
        agent = find_agent(user, agent_id, defined=True)
        conversations = len(use_of_agent(agent).threads)
        is_erased = erase_agent(agent, by=user)
        return Response({"conversations": conversations, "is_erased": is_erased})


class AgentDefinition(ApiView):
    """The endpoint `GET /agents/{id}/definition`, for people who may read it."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "get_agent_definition",
        "Read all fields of an agent's definition",
        answer=DefinitionShape,
        headers=(ETAG,),
    )
    def get(self, request: Request, agent_id: str) -> Response:
        agent = find_agent(person(request), agent_id, defined=True)
        return Response(whole_definition(agent), headers={"ETag": _tag(agent)})


class AgentVersions(ApiView):
    """The endpoint `GET /agents/{id}/versions`: newest first."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_agent_versions",
        "List the versions of an agent",
        query=PageQuery,
        answer=Page(VersionShape),
    )
    def get(self, request: Request, agent_id: str) -> Response:
        agent = find_agent(person(request), agent_id, defined=True)
        query = read_query(PageQuery, request)
        before = AgentVersion.objects.filter(agent=OuterRef("agent"), number__lt=OuterRef("number"))
        rows = agent.versions.select_related("created_by").annotate(
            spec_before=Subquery(before.order_by("-number").values("spec")[:1])
        )
        return page_of(
            rows,
            VersionShape().to_representation,
            by="number",
            descending=True,
            cursor=query.get("cursor"),
            limit=query["limit"],
        )


class OneAgentVersion(ApiView):
    """The endpoint `GET /agents/{id}/versions/{number}`"""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_agent_version", "Read a version of an agent", answer=VersionDetailShape)
    def get(self, request: Request, agent_id: str, number: int) -> Response:
        agent = find_agent(person(request), agent_id, defined=True)
        return Response(VersionDetailShape(version_of(agent.pk, number)).data)


class RestoreAgentVersion(ApiView):
    """The endpoint `POST /agents/{id}/versions/{number}/restore`"""

    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "restore_agent_version",
        "Restore an earlier version of an agent",
        answer=AgentDetailShape,
        errors=(400, 409, 412),
        headers=(IF_MATCH, ETAG),
        description="As a new version. Its slug, its description and the people who may use it "
        "stay.",
    )
    def post(self, request: Request, agent_id: str, number: int) -> Response:
        user = person(request)
        agent = find_agent(user, agent_id, defined=True)
        with _at_fields():
            restored = restore_version(
                agent.pk,
                number,
                by=user,
                known_tools=known_tool_names(),
                matches=request.headers.get("If-Match", ""),
            )
        return _shown(restored)


def _tag(agent: Agent) -> str:
    return f'"{definition_tag(agent)}"'


def _shown(agent: Agent, *, status: int = 200) -> Response:
    return Response(AgentDetailShape(agent).data, status=status, headers={"ETag": _tag(agent)})


@contextmanager
def _at_fields() -> Iterator[None]:
    """Report the problems of a file at the fields of the body."""
    try:
        yield
    except InvalidAgentFile as error:
        problems: dict[str, list[str]] = {}
        for each in error.problems:
            field, _, rest = each.place.partition(".")
            message = f"{rest}: {each.message}" if rest else each.message
            problems.setdefault(field or "body", []).append(message)
        raise ValidationError(problems) from None
