"""The MCP servers that people can see, and the differences between accepted and current tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.contrib.auth.models import PermissionsMixin
from django.db.models import QuerySet
from django.utils.translation import gettext

from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.protocol.definitions import offered_name
from agents.models import Agent
from agents.selectors.visible import Person, agents_for
from text_scanner import Finding, scan

CONFIGURE_MCP = "vel_mcp_client.configure_mcpserver"
VIEW_MCP = "vel_mcp_client.view_mcpserver"
Change = Literal["new", "changed", "gone", "same"]
LONGEST_SCANNED = 40_000


@dataclass(frozen=True, slots=True)
class ToolDifference:
    """One tool: as it was accepted (`before`), and as the server describes it now (`after`)."""

    name: str
    offered: str
    change: Change
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    def text(self, side: Literal["before", "after"]) -> str:
        """Return its definition as text. A page must escape invisible characters."""
        definition = self.before if side == "before" else self.after
        return "" if definition is None else tool_text(definition)

    def findings(self) -> list[Finding]:
        """Return suspicious passages of the current definition."""
        return scan(self.text("after")[:LONGEST_SCANNED]) if self.change != "gone" else []


def tool_text(definition: Mapping[str, Any]) -> str:
    """Return the whole definition of a tool, as text."""
    parts = [f"title: {definition['title']}"] if definition["title"] else []
    parts.append(definition["description"])
    parts.append("input: " + json.dumps(definition["input_schema"], ensure_ascii=False, indent=1))
    if definition["annotations"]:
        parts.append(
            "hints: " + json.dumps(definition["annotations"], ensure_ascii=False, indent=1)
        )
    return "\n".join(parts)


def differences(row: McpServer) -> list[ToolDifference]:
    """Return an item for each tool that is accepted or was listed last, also for equal ones."""
    pinned = {tool["name"]: tool for tool in row.tools}
    if row.found is None:
        return [_difference(row, name, tool, tool) for name, tool in pinned.items()]
    found = {tool["name"]: tool for tool in row.found}
    names = dict.fromkeys([*found, *pinned])
    return [_difference(row, name, pinned.get(name), found.get(name)) for name in names]


def _difference(
    row: McpServer, name: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> ToolDifference:
    change: Change = "same"
    if before is None:
        change = "new"
    elif after is None:
        change = "gone"
    elif before["digest"] != after["digest"]:
        change = "changed"
    return ToolDifference(name, offered_name(row.slug, name), change, before, after)


def status_of(row: McpServer) -> str:
    """Return the status in a few words, for lists."""
    if not row.enabled:
        return gettext("off")
    if row.problem:
        return gettext("not reached")
    if row.found is not None and any(each.change != "same" for each in differences(row)):
        return gettext("to be accepted") if row.tools else gettext("new: to be accepted")
    if not row.tools:
        return gettext("no tools fetched yet")
    return gettext("%(count)s tools") % {"count": len(row.tools)}


def assigned(entries: object) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Read the option `mcp_servers`: pairs of a slug and the names of tools, None for all.

    Raises `ValueError` with the number of the entry and the reason.
    """
    if not isinstance(entries, list):
        raise ValueError('Give a list, as ["time", {"server": "git", "tools": ["git_log"]}].')
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        tools: tuple[str, ...] | None = None
        slug = entry
        if isinstance(entry, dict) and set(entry) == {"server", "tools"}:
            slug, names = entry["server"], entry["tools"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError(f"{number}: “tools” must be a list of names.")
            tools = tuple(names)
        if not isinstance(slug, str):
            raise ValueError(
                f"{number}: Write the name of a server, or an object with “server” and “tools”."
            )
        if slug in seen:
            raise ValueError(f"{number}: {slug!r} is listed twice.")
        seen.add(slug)
        yield slug, tools


def servers_named_in(entries: object) -> set[str]:
    """Return the slugs in the option `mcp_servers`. A malformed option has no slugs."""
    try:
        return {slug for slug, _ in assigned(entries)}
    except ValueError:
        return set()


def servers_of(agent: Agent) -> Any:
    """Return the option `mcp_servers` of an agent, as it is stored."""
    return agent.definition.get("mcp_servers", [])


def agents_with_servers(agents: QuerySet[Agent]) -> QuerySet[Agent]:
    """Return those of `agents` that have servers."""
    return agents.filter(definition__contains='"mcp_servers":')


def offered_names(entries: object) -> set[str]:
    """Return the names, for models, of all accepted tools of the servers in `entries`."""
    slugs = servers_named_in(entries) if entries else ()
    rows = McpServer.objects.filter(slug__in=slugs).only("slug", "tools") if slugs else ()
    return {offered_name(row.slug, tool["name"]) for row in rows for tool in row.tools}


def agents_with(slug: str, agents: Iterable[Agent]) -> list[str]:
    """Return the slugs of the `agents` with this server, in order."""
    return sorted(agent.slug for agent in agents if slug in servers_named_in(servers_of(agent)))


def server_of_run(agent_id: str, slug: str, tool: str) -> tuple[McpServer, dict[str, Any]] | None:
    """Return the server and the accepted definition of the tool, if the agent has both now."""
    agent = Agent.objects.only("definition").filter(pk=agent_id).first()
    row = McpServer.objects.filter(slug=slug, enabled=True).first()
    if agent is None or row is None:
        return None
    try:
        assignments = dict(assigned(servers_of(agent)))
    except ValueError:
        return None
    if slug not in assignments or (
        assignments[slug] is not None and tool not in (assignments[slug] or ())
    ):
        return None
    pinned = next((each for each in row.tools if each["name"] == tool), None)
    return None if pinned is None else (row, pinned)


def may_see_all_mcp_servers(user: Person) -> bool:
    """Return whether `user` may see every server, with its address."""
    return (
        isinstance(user, PermissionsMixin)
        and bool(getattr(user, "is_active", False))
        and (user.has_perm(CONFIGURE_MCP) or user.has_perm(VIEW_MCP))
    )


def mcp_servers_for(user: Person) -> QuerySet[McpServer]:
    """Return servers of agents that `user` may use, or all for operators."""
    if may_see_all_mcp_servers(user):
        return McpServer.objects.all()
    agents = agents_with_servers(agents_for(user)).only("definition")
    slugs = {slug for agent in agents for slug in servers_named_in(servers_of(agent))}
    return McpServer.objects.filter(slug__in=slugs, enabled=True)
