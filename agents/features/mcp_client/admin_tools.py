"""A server's present tools next to the accepted ones, and the button that accepts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext

from agents.doors.admin.journal import person
from agents.doors.admin.strict_pages import STYLES, strict
from agents.doors.admin.text import DiffLine, text_lines
from agents.features.mcp_client.actions import accept_tools, fetch_tools, may_accept, may_configure
from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.queries import ToolDifference, differences
from agents.hidden_text import visible
from agents.models import Effect
from agents.services.errors import ServiceError

FINDINGS_SHOWN = 20


@dataclass(frozen=True)
class ShownTool:
    """One tool for the page. All texts are safe to display."""

    field: str
    name: str
    offered: str
    change: str
    text: str
    lines: tuple[DiffLine, ...]
    findings: tuple[tuple[str, str, str], ...]
    """(severity, description, where)."""
    reads: bool
    """Whether it was accepted as read-only. For a changed tool, a person must confirm it again."""
    says_it_reads: bool
    is_accepted: bool


def fetch_page(page: ModelAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Fetch the tools of the server on POST, and show them."""
    server = _server_or_404(page, request, object_id)
    if request.method != "POST" or not may_configure(person(request)):
        raise PermissionDenied
    try:
        fetch_tools(server.pk, by=person(request))
    except ServiceError as error:
        server.refresh_from_db()
        return _page(page, request, server, 409, problem=visible(error.message))
    return HttpResponseRedirect(_url(server))


def accept_page(page: ModelAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show the tools. A POST accepts the selected ones of the list that was shown."""
    server = _server_or_404(page, request, object_id)
    if request.method != "POST":
        return _page(page, request, server)
    effects: dict[str, str] = {}
    for number, each in enumerate(differences(server)):
        if each.after is not None and request.POST.get(f"take-{number}") == each.name:
            reads = request.POST.get(f"reads-{number}") == "on"
            effects[each.name] = str(Effect.READ if reads else Effect.EXTERNAL)
    digest = request.POST.get("digest", "")
    try:
        accept_tools(server.pk, digest=digest, effects=effects, by=person(request))
    except ServiceError as error:
        server.refresh_from_db()
        return _page(page, request, server, 409, problem=visible(error.message))
    page.log_change(request, server, f"Accepted {len(effects)} tools.")
    text = gettext("Accepted tools of %(server)s, and no others: %(count)s.")
    page.message_user(request, text % {"server": server.slug, "count": len(effects)})
    return HttpResponseRedirect(_url(server))


def _server_or_404(page: ModelAdmin, request: HttpRequest, object_id: str) -> McpServer:
    server = page.get_queryset(request).filter(pk=object_id).first()
    if server is None:
        raise Http404("There is no such MCP server.")
    if not page.has_view_permission(request, server):
        raise PermissionDenied
    return server


def _url(server: McpServer) -> str:
    return reverse("admin:vel_mcp_client_mcpserver_tools", args=[server.pk])


def _page(
    page: ModelAdmin,
    request: HttpRequest,
    server: McpServer,
    status: int = 200,
    *,
    problem: str = "",
) -> HttpResponse:
    tools = [_shown(number, each) for number, each in enumerate(differences(server))]
    user = person(request)
    context: dict[str, Any] = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "media": STYLES,
        "title": gettext("Tools of %(server)s") % {"server": server.slug},
        "server": server,
        "tools": tools,
        "refused": [(visible(name), visible(why)) for name, why in server.found_refused],
        "is_waiting": server.found is not None,
        "digest": server.found_digest,
        "problem": problem or visible(server.problem),
        "may_fetch": may_configure(user),
        "may_accept": may_accept(user),
        "fetch_url": reverse("admin:vel_mcp_client_mcpserver_fetch", args=[server.pk]),
        "server_url": reverse("admin:vel_mcp_client_mcpserver_change", args=[server.pk]),
    }
    request.current_app = page.admin_site.name
    template = "admin/vel_mcp_client/mcpserver/tools.html"
    return strict(TemplateResponse(request, template, context, status=status))


def _shown(number: int, each: ToolDifference) -> ShownTool:
    before, after = visible(each.text("before")), visible(each.text("after"))
    pinned: Any = each.before or {}
    hints: Any = (each.after or pinned).get("annotations", {})
    return ShownTool(
        field=str(number),
        name=visible(each.name),
        offered=each.offered,
        change=each.change,
        text=after or before,
        lines=tuple(text_lines(before, after)) if each.change == "changed" else (),
        findings=tuple(
            (found.severity, visible(found.description), visible(found.match[:200]))
            for found in each.findings()[:FINDINGS_SHOWN]
        ),
        reads=pinned.get("effect") == Effect.READ,
        says_it_reads=hints.get("readOnlyHint") is True,
        is_accepted=each.before is not None,
    )
