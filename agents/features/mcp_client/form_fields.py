"""The field for an agent's MCP servers: each server with all, some or none of its tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.json_input import JsonText
from agents.doors.agent_form.listed import listed
from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.queries import assigned, status_of
from agents.hidden_text import visible

MODES = {
    "none": _("None"),
    "all": _("All accepted tools"),
    "some": _("Only the chosen tools"),
}


@dataclass(frozen=True)
class ShownServer:
    """A server with its modes (key, label, chosen) and tools (name, text, effect, chosen)."""

    slug: str
    about: str
    status: str
    modes: list[tuple[str, str, bool]]
    tools: list[tuple[str, str, str, str, bool]]


class ServersWidget(forms.Widget):
    """A mode for each server, and a checkbox for each of its tools."""

    template_name = "vel_mcp_client/servers_field.html"

    class Media:
        css = {"all": ["agents/web/agent_form.css"]}

    def id_for_label(self, id_: str, index: Any = None) -> str:
        return ""

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-servers" not in data

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        if name in data or f"{name}-servers" not in data:
            return data.get(name)
        found: list[Any] = []
        for slug in filter(None, listed(data, f"{name}-servers")):
            mode = data.get(f"{name}-mode-{slug}", "none")
            if mode == "all":
                found.append(slug)
            elif mode == "some":
                found.append({"server": slug, "tools": listed(data, f"{name}-pick-{slug}")})
        return json.dumps(found) if found else ""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        try:
            entries = json.loads(value) if isinstance(value, str) and value else value or []
            chosen = dict(assigned(list(entries)))
        except (ValueError, TypeError, RecursionError):
            return {**context, "text": value}
        rows = {row.slug: row for row in McpServer.objects.defer("secrets").order_by("slug")}
        names = [*rows, *(slug for slug in chosen if slug not in rows)]
        return {**context, "servers": [_shown(slug, rows.get(slug), chosen) for slug in names]}


def _shown(
    slug: str, row: McpServer | None, chosen: dict[str, tuple[str, ...] | None]
) -> ShownServer:
    wanted = chosen.get(slug, ())
    mode = "none" if slug not in chosen else "all" if wanted is None else "some"
    accepted = {tool["name"]: tool for tool in row.tools} if row is not None else {}
    names = [*accepted, *(name for name in wanted or () if name not in accepted)]
    return ShownServer(
        slug=slug,
        about=visible(row.description) if row is not None else "",
        status=status_of(row) if row is not None else gettext("there is no such server"),
        modes=[(key, str(label), key == mode) for key, label in MODES.items()],
        tools=[
            (
                name,
                visible(name),
                visible(accepted.get(name, {}).get("description", gettext("not accepted"))),
                accepted.get(name, {}).get("effect", ""),
                name in (wanted or ()),
            )
            for name in names
        ],
    )


class ServersField(JsonText):
    """A list of servers, as in the option `mcp_servers`."""

    def __init__(self, present: Any, help_text: str) -> None:
        super().__init__(empty=[], help_text=help_text, widget=ServersWidget())

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether servers or tools differ. Their order has no meaning."""
        try:
            return _as_sets(self.to_python(data)) != _as_sets(initial or [])
        except (ValidationError, ValueError, TypeError):
            return True


def _as_sets(entries: Any) -> dict[str, frozenset[str] | None]:
    return {
        slug: None if tools is None else frozenset(tools)
        for slug, tools in assigned([_plain(each) for each in entries])
    }


def _plain(entry: Any) -> Any:
    return entry if isinstance(entry, str | dict) else entry.model_dump(mode="json")


FORM_FIELDS = {"mcp_servers": ServersField}
