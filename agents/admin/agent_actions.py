"""Actions on the list of agents: duplicate, activate, deactivate, export."""

from __future__ import annotations

import io
import zipfile
from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import get_text_list, slugify
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.agent_files.reading import MAX_BYTES
from agents.doors.admin.bulk import Bulk, carry_out
from agents.doors.admin.journal import person
from agents.doors.admin.strict_pages import STYLES, strict
from agents.doors.agent_form.labels import option_text
from agents.hidden_text import visible
from agents.kernel.options import option_classes, option_fields
from agents.kernel.relations import relations
from agents.middleware.registry import known_tool_names
from agents.models import Agent
from agents.services.agent_definitions.actions import save_agent, set_active
from agents.services.agent_definitions.files import (
    ImportPlan,
    InvalidAgentFile,
    carry_out_import,
    check_script,
    export_agent,
    plan_import,
)
from agents.services.agent_definitions.rights import guarded_fields
from agents.services.erasure.agents import NEEDED, erase_conversations
from agents.services.errors import Conflict, NotAllowed, ServiceError
from agents.spec import OPTIONS

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Agent]
else:
    _Base = object


_OWN_TO_A_ROW = {"id", "slug", "name", "owner", "everyone", "mcp_tool", "version", "definition"}
_OWN_TO_A_ROW |= {"created_at", "updated_at"}
_PARTS = {
    _("sandbox"): "sandbox",
    _("approval"): "interrupt_on",
}
"""Names for messages about fields that were not copied, with one field of each part."""
MOST_EXPORTED = 500


def not_to_change(request: HttpRequest) -> list[str]:
    """Return the fields that need a further permission (`guarded_fields`) which the user lacks."""
    user = request.user
    return [name for name, needed in guarded_fields().items() if not user.has_perm(needed)]


class AgentActions(_Base):
    """Actions of the agents' admin."""

    @admin.action(description=_("Duplicate the selected agents"), permissions=["add"])
    def duplicate_selected(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        for agent in queryset:
            try:
                copy = _duplicate(request, agent)
            except ServiceError as error:
                self.message_user(request, f"{visible(agent.name)}: {error}", messages.ERROR)
                continue
            self.log_addition(request, copy, f"Duplicated from {agent.slug}.")
            left_out_fields = not_to_change(request)
            left_out = [str(part) for part, field in _PARTS.items() if field in left_out_fields]
            left_out += [
                option_text(kind.title or kind.__name__)
                for kind in option_classes()
                if kind not in OPTIONS
                and kind.model_fields.keys() & agent.definition.keys() & set(left_out_fields)
            ]
            left_out += [
                option_text(relation.title).lower()
                for relation in relations()
                if relation.name in left_out_fields and relation.rows(agent)
            ]
            text = gettext("%(agent)s was duplicated as %(slug)s; only you may use it.")
            if left_out:
                text = gettext(
                    "%(agent)s was duplicated as %(slug)s; only you may use it. The defaults were "
                    "taken for its %(parts)s."
                )
            values = {
                "agent": visible(agent.name),
                "slug": copy.slug,
                "parts": get_text_list(left_out, gettext("and")),
            }
            self.message_user(request, text % values, messages.SUCCESS)

    @admin.action(description=_("Activate the selected agents"), permissions=["change"])
    def activate_selected(self, request: HttpRequest, queryset: QuerySet[Agent]) -> Any:
        bulk = Bulk(
            "activate_selected",
            _("Activate %(count)s %(rows)s"),
            _("%(failed)s of %(count)s could not be activated: %(problems)s"),
        )
        return self._set_active(request, queryset, bulk, active=True)

    @admin.action(description=_("Deactivate the selected agents"), permissions=["change"])
    def deactivate_selected(self, request: HttpRequest, queryset: QuerySet[Agent]) -> Any:
        bulk = Bulk(
            "deactivate_selected",
            _("Deactivate %(count)s %(rows)s"),
            _("%(failed)s of %(count)s could not be deactivated: %(problems)s"),
            _(
                "Inactive agents cannot start new runs. Current runs continue, and the history "
                "stays."
            ),
        )
        return self._set_active(request, queryset, bulk, active=False)

    def _set_active(
        self, request: HttpRequest, queryset: QuerySet[Agent], bulk: Bulk, *, active: bool
    ) -> HttpResponse | None:
        # Use the ticked rows: the list may be filtered by the field that the action changes.
        if request.POST.get("select_across", "0") == "0":
            ticked = request.POST.getlist(ACTION_CHECKBOX_NAME)
            queryset = self.get_queryset(request).filter(pk__in=ticked)
        do = partial(self._activate, request, active=active)
        return carry_out(self, request, queryset, bulk, do, lambda agent: visible(agent.slug))

    def _activate(self, request: HttpRequest, agent: Agent, *, active: bool) -> str:
        if not set_active(agent.pk, active, by=person(request)):
            return gettext("activated already") if active else gettext("deactivated already")
        self.log_change(request, agent, "Activated." if active else "Deactivated.")
        return gettext("activated") if active else gettext("deactivated")

    def has_erase_permission(self, request: HttpRequest) -> bool:
        return all(request.user.has_perm(needed) for needed in NEEDED)

    @admin.action(
        description=_("Erase conversations of the selected agents"), permissions=["erase"]
    )
    def erase_conversations_selected(self, request: HttpRequest, queryset: QuerySet[Agent]) -> Any:
        bulk = Bulk(
            "erase_conversations_selected",
            _("Erase conversations of %(count)s %(rows)s"),
            _("%(failed)s of %(count)s could not be cleared: %(problems)s"),
            _(
                "All conversations with these deactivated agents go, with files, runs and "
                "subagents. This cannot be undone. Afterwards, the agents can be deleted."
            ),
            is_dangerous=True,
        )
        do = partial(self._erase_conversations, request)
        return carry_out(self, request, queryset, bulk, do, lambda agent: visible(agent.slug))

    def _erase_conversations(self, request: HttpRequest, agent: Agent) -> str:
        number = erase_conversations(agent, by=person(request))
        self.log_change(request, agent, f"Erased {number} conversations.")
        return gettext("cleared")

    @admin.action(description=_("Export the selected agents as YAML"), permissions=["view"])
    def export_selected(self, request: HttpRequest, queryset: QuerySet[Agent]) -> Any:
        agents = list(queryset[: MOST_EXPORTED + 1])
        if len(agents) > MOST_EXPORTED:
            text = gettext("An export has at most %(most)s agents. Filter the list and try again.")
            self.message_user(request, text % {"most": MOST_EXPORTED}, messages.ERROR)
            return None
        texts = {agent.slug: export_agent(agent, by=person(request)) for agent in agents}
        if len(texts) == 1:
            [(slug, text)] = texts.items()
            return download(f"{slug}.yaml", text.encode(), "application/yaml; charset=utf-8")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for slug, text in texts.items():
                # # A fixed time, so that the same agents give the same bytes.
                archive.writestr(zipfile.ZipInfo(f"{slug}.yaml"), text)
        return download("agents.zip", packed.getvalue(), "application/zip")


def download(name: str, data: bytes, content_type: str) -> HttpResponse:
    """Return a response that browsers save as a file and never show as a page."""
    return HttpResponse(
        data,
        headers={
            "Content-Type": content_type,
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
        },
    )


@transaction.atomic
def _duplicate(request: HttpRequest, agent: Agent) -> Agent:
    """Return a copy that belongs to the user and is not shared.

    Does not copy fields that the user has no permission to configure: sandbox, approval, relations
    and options. Raises `InvalidRequest` if the agent's model is a script that is not allowed.
    """
    left_out = {*_OWN_TO_A_ROW, *not_to_change(request)}
    copied = {
        name: getattr(agent, name)
        for name in (*(field.name for field in Agent._meta.concrete_fields), *option_fields())
        if name not in left_out
    }
    name = f"{agent.name[:90]} (copy)"
    slug = _free_slug(slugify(f"{agent.slug[:90]}-copy"))
    copy = Agent(name=name, slug=slug, owner_id=request.user.pk, **copied)
    check_script(copy.model)
    related = {
        relation.name: relation.copied(agent)
        for relation in relations()
        if relation.name not in left_out
    }
    guarded = "approver_groups" in left_out
    return save_agent(
        copy,
        by_id=request.user.pk,
        approver_groups=None if guarded else list(agent.approver_groups.all()),
        note=f"Duplicated from {agent.slug}.",
        related=related,
    )


def _free_slug(wanted: str) -> str:
    taken = set(Agent.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    number, slug = 2, wanted
    while slug in taken:
        number, slug = number + 1, f"{wanted}-{number}"
    return slug


class ImportForm(forms.Form):
    """An agent file or its text."""

    file = forms.FileField(required=False, label=_("A file"))
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
        return _page(page, request, 400, problems=[gettext("The file is not UTF-8 text.")])
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
    told_version = gettext("The agent %(agent)s is stored as version %(version)s.")
    values = {"agent": visible(agent.slug), "version": agent.version}
    page.message_user(request, told_version % values)
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
        "title": gettext("Import an agent"),
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
