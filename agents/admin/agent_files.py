"""Import and export of agents as YAML files. The import shows its changes first."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from agents.admin.agent_actions import download
from agents.agent_files.reading import MAX_BYTES
from agents.doors.admin.journal import person
from agents.doors.admin.strict_pages import STYLES, strict
from agents.hidden_text import visible
from agents.middleware.registry import known_tool_names
from agents.services.agent_definitions.files import (
    ImportPlan,
    InvalidAgentFile,
    carry_out_import,
    export_agent,
    plan_import,
)
from agents.services.errors import Conflict, NotAllowed


class ImportForm(forms.Form):
    """An agent file or its text."""

    file = forms.FileField(required=False, label="A file")
    text = forms.CharField(required=False, strip=False, max_length=MAX_BYTES)
    base = forms.CharField(required=False, max_length=64)


def import_page(page: ModelAdmin, request: HttpRequest) -> HttpResponse:
    """Show the form, then the changes of a file, then import exactly these changes."""
    if not (page.has_add_permission(request) or page.has_change_permission(request)):
        raise PermissionDenied
    if request.method != "POST":
        return _page(page, request)
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        messages = [visible(f"{name}: {texts[0]}") for name, texts in form.errors.items()]
        return _page(page, request, 400, problems=messages)
    data = form.cleaned_data
    try:
        text = _text_of(data)
    except UnicodeDecodeError:
        return _page(page, request, 400, problems=["The file is not UTF-8 text."])
    user, tools, base = person(request), known_tool_names(), data["base"]
    try:
        if not base:
            return _page(
                page, request, plan=plan_import(text, by=user, known_tools=tools), text=text
            )
        agent, plan = carry_out_import(text, by=user, known_tools=tools, base=base)
    except InvalidAgentFile as error:
        messages = [visible(str(problem)) for problem in error.problems]
        return _page(page, request, 400, problems=messages, text=text)
    except NotAllowed as error:
        return _page(page, request, 403, problems=[visible(error.message)], text=text)
    except Conflict as error:
        again = plan_import(text, by=user, known_tools=tools)
        return _page(page, request, 409, problems=[error.message], plan=again, text=text)
    log = page.log_addition if plan.is_new else page.log_change
    log(request, agent, "Imported from a file.")
    told_version = f"The agent {visible(agent.slug)} is stored as version {agent.version}."
    page.message_user(request, told_version)
    return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent.pk]))


def export_file(page: ModelAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Download one agent as a file."""
    agent = page.get_queryset(request).filter(pk=object_id).first()
    if agent is None:
        raise Http404("There is no such agent.")
    if not page.has_view_permission(request, agent):
        raise PermissionDenied
    text = export_agent(agent, by=person(request))
    return download(f"{agent.slug}.yaml", text.encode(), "application/yaml; charset=utf-8")


def _text_of(data: dict[str, Any]) -> str:
    """Return the text of the uploaded file, or else of the text field."""
    if data["file"] is not None:
        return bytes(data["file"].read(MAX_BYTES + 1)).decode("utf-8")
    # Browsers send line breaks of a text field as CR LF.
    return str(data["text"]).replace("\r\n", "\n")


def _page(
    page: ModelAdmin,
    request: HttpRequest,
    status: int = 200,
    *,
    plan: ImportPlan | None = None,
    problems: list[str] | None = None,
    text: str = "",
) -> HttpResponse:
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "media": STYLES,
        "title": "Import an agent",
        "plan": plan,
        "slug": visible(plan.slug) if plan else "",
        "lines": [(_sign(line), visible(line)) for line in plan.diff] if plan else [],
        "problems": problems or [],
        "text": text,
        "has_hidden": visible(text) != text,
    }
    request.current_app = page.admin_site.name
    template = "admin/agents/agent/import.html"
    return strict(TemplateResponse(request, template, context, status=status))


def _sign(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "gap"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")
