"""The option `mcp_servers` of agents, and the tools that a version of an agent has of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from agents.features.mcp_client.models import McpServer, McpTransport
from agents.features.mcp_client.protocol.definitions import offered_name
from agents.features.mcp_client.protocol.input_schema import usable_schema
from agents.features.mcp_client.protocol.limits import MAX_TOOLS
from agents.features.mcp_client.queries import CONFIGURE_MCP, assigned, offered_names
from agents.kernel.options import AgentOptions, FormHelp
from agents.models import Agent
from agents.services.errors import InvalidRequest

Name = Annotated[str, Field(min_length=1, max_length=300)]


class McpServerFile(BaseModel):
    """An MCP server, and the names of its tools that the agent can use."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    server: Name = Field(description="The slug of the server.")
    tools: list[Name] = Field(
        description="Names of tools that a person has accepted (docs/guides/mcp.md)."
    )


def _check_entry(entry: Any) -> Any:
    """Describe the error of an entry in plain words."""
    try:
        list(assigned([entry]))
    except ValueError as problem:
        message = str(problem).partition(": ")[2]
        raise PydanticCustomError("mcp_server", "{message}", {"message": message}) from None
    return entry


class McpServers(AgentOptions):
    title = "MCP servers"
    permission = CONFIGURE_MCP
    listed = []

    mcp_servers: Annotated[
        tuple[Annotated[Name | McpServerFile, BeforeValidator(_check_entry)], ...],
        FormHelp("MCP servers whose accepted tools it has."),
    ] = Field(
        default=(),
        description="MCP servers whose tools it has, for example "
        '["time", {"server": "git", "tools": ["git_log"]}].',
    )

    @property
    def entries(self) -> list[Any]:
        """The servers as JSON data."""
        found: list[Any] = self.model_dump(mode="json")["mcp_servers"]
        return found

    def pinned(self, agent: Agent) -> dict[str, Any]:
        tools = [tool.model_dump(mode="json") for tool in tool_specs(self.entries, agent)]
        return {"mcp_tools": tools} if tools else {}

    @classmethod
    def restored(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the servers of the tools in a version, with these tools."""
        servers: dict[str, list[str]] = {}
        for tool in spec.get("mcp_tools", ()):
            servers.setdefault(tool["server"], []).append(tool["tool"])
        entries = [{"server": server, "tools": tools} for server, tools in servers.items()]
        return {"mcp_servers": entries} if entries else {}

    def offered_tools(self) -> Collection[str]:
        return offered_names(self.entries)


class McpToolSpec(BaseModel):
    """A tool of an MCP server as a person accepted it. `name` is its name for the model.

    `input_schema` is JSON text, since the order of names matters to models. `digest` is of the
    definition by the server: while the server gives another one, calls are refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    server: str
    tool: str
    description: str
    input_schema: str
    effect: Literal["read", "external"] = "external"
    seconds: int
    digest: str


class McpTools(AgentOptions):
    """Written from `mcp_servers`. They are not in `OPTIONS`, because people do not enter them."""

    mcp_tools: tuple[McpToolSpec, ...] = ()
    """Each call checks whether the agent still has the tool."""


def tool_specs(entries: list[Any], agent: Agent) -> tuple[McpToolSpec, ...]:
    """Return the accepted tools of the servers in `entries`, as a version of `agent` has them.

    Raises `InvalidRequest` (code `invalid_agent`) that names the entry.
    """
    try:
        assignments = dict(assigned(entries))
    except ValueError as problem:
        location, _, reason = str(problem).partition(": ")
        message = f".{location}: {reason}" if reason else f": {location}"
        raise _invalid(message) from None
    if not assignments:
        return ()
    rows = {
        row.slug: row for row in McpServer.objects.filter(slug__in=assignments).defer("secrets")
    }
    specs: list[McpToolSpec] = []
    for number, (slug, wanted) in enumerate(assignments.items()):
        row = rows.get(slug)
        if row is None:
            known = ", ".join(McpServer.objects.values_list("slug", flat=True)) or "none"
            raise _invalid(f".{number}: there is no MCP server {slug!r}; there are: {known}.")
        if row.transport == McpTransport.STDIO and not agent.sandbox:
            raise _invalid(
                f".{number}: {slug} runs in the sandbox, which this agent does not have."
            )
        if row.enabled:
            specs += [
                _spec(row, tool) for tool in row.tools if wanted is None or tool["name"] in wanted
            ]
    if len(specs) > MAX_TOOLS:
        raise _invalid(f": these are {len(specs)} tools, and an agent may have {MAX_TOOLS}.")
    return tuple(specs)


def _spec(row: McpServer, tool: Mapping[str, Any]) -> McpToolSpec:
    schema = usable_schema(tool["input_schema"])
    return McpToolSpec(
        name=offered_name(row.slug, tool["name"]),
        server=row.slug,
        tool=tool["name"],
        description=tool["description"],
        input_schema=json.dumps(schema, ensure_ascii=False, separators=(",", ":")),
        effect=tool["effect"],
        seconds=row.call_seconds,
        digest=tool["digest"],
    )


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(f"mcp_servers{message}", code="invalid_agent")


OPTIONS = [McpServers]
