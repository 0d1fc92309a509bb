"""The admin page with the skills of one agent and a switch for each."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ModelAdmin, display
from django.contrib.messages import ERROR, SUCCESS
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import person
from agents.doors.admin.strict_pages import STYLES, strict
from agents.hidden_text import visible
from agents.models import Agent
from agents.services.errors import ServiceError
from skills_app.actions.library import set_enabled, sync_shared_skills
from skills_app.actions.rights import may_change_skills
from skills_app.admin.page import trust_tag, where_from
from skills_app.models import Skill, Trust
from skills_app.queries.skills import AgentSkillRow, agent_skills


@display(description=_("skills"))
def skills_of_agent(agent: Agent) -> SafeString | str:
    """Return text such as `5 on, of 12`, linked to the page of the agent's skills."""
    if not agent.version:
        return gettext("after saving")
    rows = agent_skills(agent)
    on = sum(1 for row in rows if row.enabled and not row.collides)
    url = reverse("admin:agents_agent_skills", args=[agent.pk])
    text = gettext("%(on)s on, of %(all)s") % {"on": on, "all": len(rows)}
    return format_html('<a href="{}">{}</a>', url, text)


def skills_page(page: ModelAdmin[Agent], request: HttpRequest, object_id: str) -> HttpResponse:
    """Show the skills that the agent has or could have. A POST enables or disables one."""
    agent = page.get_object(request, object_id)
    if agent is None:
        raise Http404("There is no such agent.")
    if not page.has_view_permission(request, agent):
        raise PermissionDenied
    if request.method == "POST":
        _switch(page, request, agent)
        return HttpResponseRedirect(request.path)
    sync_shared_skills()
    skills = page.admin_site.get_model_admin(Skill)
    rows = agent_skills(agent)
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "media": STYLES,
        "title": gettext("Skills of %(agent)s") % {"agent": visible(agent.name)},
        "agent": agent,
        "rows": [_shown(row) for row in rows],
        "on": sum(1 for row in rows if row.enabled and not row.collides),
        "may_change": may_change_skills(person(request), agent),
        "can_see_skills": skills.has_view_permission(request),
    }
    request.current_app = page.admin_site.name
    return strict(TemplateResponse(request, "skills_app/admin/agent.html", context))


def _shown(row: AgentSkillRow) -> dict[str, Any]:
    trust = row.version.trust if row.version else ""
    return {
        "skill": row.skill,
        "name": visible(row.skill.name),
        "description": visible(row.skill.description),
        "place": gettext("own") if row.skill.agent_id else where_from(row.skill),
        "version": row.version,
        "trust": trust_tag(trust) if trust else "",
        "enabled": row.enabled,
        "collides": row.collides,
        "waits": row.waits,
        "usable": row.version is not None and trust != Trust.QUARANTINED,
    }


def _switch(page: ModelAdmin[Agent], request: HttpRequest, agent: Agent) -> None:
    """Enable or disable the posted skill. The service checks the permission."""
    requested, word = request.POST.get("skill", ""), request.POST.get("enabled")
    known = {row.skill.pk: row.skill for row in agent_skills(agent)}
    skill = known.get(int(requested)) if requested.isdecimal() and len(requested) < 19 else None
    if skill is None or word not in ("yes", "no"):
        raise Http404("This agent has no such skill.")
    name = visible(skill.name)
    try:
        set_enabled(agent, skill.pk, word == "yes", by=person(request))
    except ServiceError as error:
        text = gettext("The skill %(skill)s: %(problem)s")
        values = {"skill": name, "problem": visible(error.message)}
        page.message_user(request, text % values, ERROR)
        return
    state = "on" if word == "yes" else "off"
    page.log_change(request, agent, f"Turned the skill {name} {state}.")
    text = gettext("The skill %(skill)s is off, from the next run on.")
    if word == "yes":
        text = gettext("The skill %(skill)s is on, from the next run on.")
    page.message_user(request, text % {"skill": name}, SUCCESS)
