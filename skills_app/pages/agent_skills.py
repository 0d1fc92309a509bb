"""The page with the skills of one agent: write own skills, enable and disable all.

The page makes changes only through services, and works without JavaScript.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.upload_limit import View, limited_form
from agents.hidden_text import escaped_text, unescaped_text, visible
from agents.models import Agent
from agents.selectors.visible import agents_for
from agents.services.errors import (
    InvalidRequest,
    ServiceError,
)
from skills_app.actions.library import (
    Imported,
    import_skill,
    set_enabled,
    sync_shared_skills,
)
from skills_app.actions.own_skills import create_own_skill, remove_skill, update_own_skill
from skills_app.actions.rights import may_change_skills
from skills_app.actions.uploads import InvalidPackage, origin_of, read_upload
from skills_app.library.scopes import BUILT_IN, LIBRARY, directory_of
from skills_app.queries.packages import instructions_of, waiting_trusts
from skills_app.queries.skills import AgentSkillRow, agent_skills
from skills_app.settings import SkillSettings


def limited_package(view: View) -> View:
    """Answer 413 to a request body that is larger than a skill package, or of unknown length."""
    return limited_form(view, lambda: SkillSettings.now().ARCHIVE_BYTES)


SOURCE = "web"
NEW = "new"
REASON_CHARACTERS = 2_000


@limited_package
@page
@require_http_methods(["GET", "HEAD", "POST"])
def skills(request: PersonRequest, slug: str) -> HttpResponse:
    """Show the agent's skills by origin. `?edit=new` and `?edit=ID` add a form.

    A POST changes the skill `skill`. Its `action` is add, save, upload, on, off or delete.
    """
    agent = get_object_or_404(agents_for(request.user), slug=slug)
    if request.method == "POST":
        return _change(request, agent)
    context = _overview(request, agent)
    if (requested := request.GET.get("edit")) and context["may_change"]:
        context["form"] = _form_of(context["rows"], agent, requested)
    return render(request, "skills_app/skills.html", context)


def _overview(request: PersonRequest, agent: Agent) -> dict[str, Any]:
    left_out = sync_shared_skills()
    rows = agent_skills(agent)
    return {
        "agent": agent,
        "left_out": sorted(left_out.items()),
        "rows": rows,
        "trusts": waiting_trusts(row.skill for row in rows),
        "may_change": may_change_skills(request.user, agent),
        "groups": _groups(rows),
        "enabled": sum(row.enabled for row in rows),
    }


def _groups(rows: list[AgentSkillRow]) -> list[dict[str, Any]]:
    """Return the rows grouped by scope, with headings."""

    def of(*, own: bool = False, scope: str = "") -> list[AgentSkillRow]:
        return [
            row
            for row in rows
            if (row.skill.agent_id is not None if own else row.skill.scope == scope)
        ]

    directories = [row for row in rows if directory_of(row.skill.scope) is not None]
    return [
        {
            "title": gettext("Own"),
            "rows": of(own=True),
            "is_own": True,
            "empty": gettext("None yet."),
        },
        {
            "title": gettext("Library"),
            "rows": sorted(of(scope=LIBRARY), key=lambda row: not row.enabled),
            "empty": gettext("The library is empty."),
            "about": gettext("Shared by all agents. Turn one on to give it to this agent."),
        },
        {
            "title": gettext("Built-in"),
            "rows": of(scope=BUILT_IN),
            "empty": gettext("This agent has no built-in skills."),
        },
        {
            "title": gettext("Directories"),
            "rows": directories,
            "empty": "",
            "about": gettext("Read again from this host's directories at the start of each run."),
        },
    ]


def _form_of(rows: list[AgentSkillRow], agent: Agent, requested: str) -> dict[str, Any]:
    if requested == NEW:
        return {"is_new": True}
    row = next((row for row in rows if str(row.skill.pk) == requested), None)
    if row is None or row.skill.agent_id != agent.pk or row.version is None:
        raise Http404("The agent owns no such skill.")
    text = instructions_of([row.version.pk]).get(row.version.pk, "")
    fields = {"name": row.skill.name, "description": row.version.fields.description}
    displayed = {name: escaped_text(value) for name, value in fields.items()}
    return {
        "skill": row.skill.pk,
        "base": row.skill.version,
        **displayed,
        "instructions": escaped_text(text),
        "has_hidden": escaped_text(text + fields["description"]) != text + fields["description"],
    }


def _change(request: PersonRequest, agent: Agent) -> HttpResponse:
    form = request.POST
    try:
        message = _carry_out(request, agent)
    except ServiceError as error:
        if form.get("action") in ("add", "save", "upload"):
            return _show_again(request, agent, error)
        messages.error(request, visible(error.message))
    else:
        messages.success(request, visible(message))
    return redirect("web:skills", slug=agent.slug)


def _carry_out(request: PersonRequest, agent: Agent) -> str:
    """Carry out the posted action and return a message about it."""
    form, user = request.POST, request.user
    match form.get("action"):
        case "add":
            typed = _typed(request)
            skill = create_own_skill(agent, **typed, by=user, source=SOURCE)
            return gettext("%(skill)s was added.") % {"skill": skill.name}
        case "save":
            typed = _typed(request)
            base = number_of(request, "base")
            skill = update_own_skill(
                agent, _skill_id(request), **typed, by=user, base_version=base, source=SOURCE
            )
            values = {"skill": skill.name, "version": skill.version}
            return gettext("%(skill)s was saved as version %(version)s.") % values
        case "upload":
            return _upload(request, agent)
        case "on":
            set_enabled(agent, _skill_id(request), True, by=user)
            return gettext("Turned on, from the next run on.")
        case "off":
            set_enabled(agent, _skill_id(request), False, by=user)
            return gettext("Turned off, from the next run on.")
        case "delete":
            remove_skill(agent, _skill_id(request), by=user, source=SOURCE)
            return gettext("Deleted. Runs that started with it keep it.")
    raise InvalidRequest(gettext("Choose add, save, upload, on, off or delete."))


def _upload(request: PersonRequest, agent: Agent) -> str:
    file = request.FILES.get("file")
    if file is None:
        raise InvalidRequest(gettext("Choose a file: a zip, a .skill file or a SKILL.md."))
    package = read_upload(file)
    result = import_skill(
        package, by=request.user, source=SOURCE, origin=origin_of(file), agent=agent
    )
    return imported_text(result)


def imported_text(result: Imported) -> str:
    """Return a message about an imported package."""
    version = result.version
    values = {
        "skill": version.fields.name,
        "version": version.number,
        "trust": version.trust,
    }
    if not result.created:
        return gettext("%(skill)s already has these bytes: nothing changed.") % values
    return gettext("%(skill)s was imported as version %(version)s (%(trust)s).") % values


def _typed(request: PersonRequest) -> dict[str, str]:
    """Return the three texts of the form, with LF instead of the CR LF that browsers send."""
    return {
        name: unescaped_text(request.POST.get(name, "").replace("\r\n", "\n"))
        for name in ("name", "description", "instructions")
    }


def _skill_id(request: PersonRequest) -> int:
    return number_of(request, "skill")


def number_of(request: PersonRequest, field: str) -> int:
    """Return the number in a hidden form field. Raises `InvalidRequest` for other text."""
    text = request.POST.get(field, "")
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return int(text)
    raise InvalidRequest(gettext("The form is incomplete: reload the page."))


def _show_again(request: PersonRequest, agent: Agent, error: ServiceError) -> HttpResponse:
    """Show the form again with the posted text and the problems."""
    form = request.POST
    context = _overview(request, agent)
    problems = [str(held) for held in error.problems] if isinstance(error, InvalidPackage) else []
    context["form"] = {
        "is_new": form.get("action") != "save",
        "skill": form.get("skill", ""),
        "base": form.get("base", ""),
        **{name: form.get(name, "") for name in ("name", "description")},
        "instructions": form.get("instructions", "").replace("\r\n", "\n"),
        "problems": problems or [error.message],
        "is_stale": error.code == "stale",
    }
    return render(request, "skills_app/skills.html", context, status=error.http_status)


def reason_of(request: PersonRequest) -> str:
    """Return the posted reason without NUL, which databases refuse."""
    return request.POST.get("reason", "").replace("\0", "")[:REASON_CHARACTERS]
