"""MCP servers, their definitions, their present tools, and the acceptance of tools."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.urls import path
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.managed.admin_rows import entity_tag
from agents.doors.rest.managed.objects import Managed, Own
from agents.doors.rest.managed.views import endpoints
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import ordered_page
from agents.doors.rest.serializers import JsonObject, read_body, read_query
from agents.features.mcp_client.actions import accept_tools, fetch_tools
from agents.features.mcp_client.admin import McpServerAdmin
from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.queries import (
    agents_with_servers,
    may_see_all_mcp_servers,
    mcp_servers_for,
    servers_named_in,
    servers_of,
)
from agents.features.mcp_client.serializers import (
    MCP_ORDER,
    AcceptBody,
    McpListQuery,
    McpServerDetailShape,
    McpServerShape,
)
from agents.models import TokenScope
from agents.selectors.visible import agents_for
from agents.services.errors import InvalidRequest, NotAllowed, NotFound


class McpServers(ApiView):
    """`GET /mcp-servers`"""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_mcp_servers",
        "List the MCP servers of agents that you may use",
        query=McpListQuery,
        answer=Page(McpServerShape),
    )
    def get(self, request: Request) -> Response:
        query, user = read_query(McpListQuery, request), person(request)
        context = _context(user)
        # Without secrets, so that they cannot leak.
        rows = mcp_servers_for(user).defer("secrets", "found")
        return ordered_page(
            rows, lambda row: McpServerShape(row, context=context).data, query, MCP_ORDER
        )


class OneMcpServer(ApiView):
    """`GET /mcp-servers/{id}`"""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_mcp_server", "Read an MCP server", answer=McpServerDetailShape)
    def get(self, request: Request, key: str) -> Response:
        user = person(request)
        return _shown(_visible(user, key), user)


class FetchMcpTools(ApiView):
    """`POST /mcp-servers/{id}/fetch`: for people who may configure servers."""

    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "fetch_mcp_tools",
        "Fetch the tools of an MCP server",
        answer=McpServerDetailShape,
        errors=(409,),
    )
    def post(self, request: Request, server_id: str) -> Response:
        user = person(request)
        row = _visible(user, server_id)
        return _shown(fetch_tools(row.pk, by=user), user)


class AcceptMcpTools(ApiView):
    """`POST /mcp-servers/{id}/accept`: for people who may accept tools."""

    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "accept_mcp_tools",
        "Accept the tool definitions of an MCP server",
        body=AcceptBody,
        answer=McpServerDetailShape,
        errors=(409,),
    )
    def post(self, request: Request, server_id: str) -> Response:
        body, user = read_body(AcceptBody, request), person(request)
        row = _visible(user, server_id)
        if not may_see_all_mcp_servers(user):
            raise NotAllowed("You cannot accept tools, because you cannot see their definitions.")
        effects = {each["tool"]: each["effect"] for each in body["tools"]}
        if len(effects) < len(body["tools"]):
            raise InvalidRequest("tools: Name each once.")
        return _shown(accept_tools(row.pk, digest=body["digest"], effects=effects, by=user), user)


def _visible(user: AbstractBaseUser, server_id: str) -> McpServer:
    row = mcp_servers_for(user).filter(pk=server_id).first()
    if row is None:
        raise NotFound(f"There is no MCP server {server_id!r} that you may see.")
    return row


def _shown(row: McpServer, user: AbstractBaseUser) -> Response:
    return Response(_detail(row, user), headers={"ETag": entity_tag(MCP_SERVERS, row)})


def _detail(row: McpServer, user: AbstractBaseUser) -> dict[str, Any]:
    context = {**_context(user), "operator": may_see_all_mcp_servers(user)}
    return dict(McpServerDetailShape(row, context=context).data)


def _context(user: AbstractBaseUser) -> dict[str, Any]:
    """Return the agents of each server, by its slug."""
    found: dict[str, list[str]] = {}
    for agent in agents_with_servers(agents_for(user)).order_by("slug"):
        for slug in servers_named_in(servers_of(agent)):
            found.setdefault(slug, []).append(agent.slug)
    return {"agents": found}


class SecretsField(JsonObject):
    """Secrets by name. `null` is not accepted: an empty object removes all of them."""

    json_schema: ClassVar = {"type": "object", "additionalProperties": {"type": "string"}}

    def to_internal_value(self, data: object) -> dict[str, str]:
        found = super().to_internal_value(data)
        if not all(isinstance(value, str) for value in found.values()):
            raise ValidationError(["Give a text for each name."])
        return found


def _secrets(**options: Any) -> SecretsField:
    return SecretsField(
        help_text="Variables of the program's environment, or headers of the requests. They are "
        "stored encrypted and never shown, and replace all that are stored.",
        **options,
    )


MCP_SERVERS = Managed(
    model=McpServer,
    admin=McpServerAdmin,
    name="mcp_server",
    plural="mcp_servers",
    rows="mcp-servers",
    what="An MCP server. Agents have its tools once a person has accepted them.",
    own={"secrets": Own(body=_secrets, form="new_secrets")},
    answer=McpServerDetailShape,
    show=_detail,
    who={
        "list": "users of its agents; all: `vel_mcp_client.view_mcpserver`",
        "read": "users of its agents; all: `vel_mcp_client.view_mcpserver`",
        **{
            verb: f"staff with `vel_mcp_client.{word}_mcpserver` and "
            "`vel_mcp_client.configure_mcpserver`"
            for verb, word in (("create", "add"), ("change", "change"), ("delete", "delete"))
        },
    },
    further={
        "fetch_mcp_tools": "`vel_mcp_client.configure_mcpserver`",
        "accept_mcp_tools": "`vel_mcp_client.accept_mcp_tools`",
    },
)

OBJECTS = [MCP_SERVERS]
urlpatterns = [
    *endpoints(MCP_SERVERS, rows=McpServers, row=OneMcpServer),
    path("mcp-servers/<opaque_id:server_id>/fetch", FetchMcpTools.as_view(), name="mcp-fetch"),
    path("mcp-servers/<opaque_id:server_id>/accept", AcceptMcpTools.as_view(), name="mcp-accept"),
]
