"""Delete a skill of the library, or an agent's own skill, in the admin."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from agents.doors.admin.journal import JournalAdmin, person
from agents.hidden_text import visible
from agents.selectors.visible import Person
from agents.services.errors import Conflict, ServiceError
from skills_app.actions.library import delete_skill_of_library
from skills_app.actions.own_skills import remove_skill
from skills_app.actions.rights import may_change_skills, may_manage_library
from skills_app.admin.page import where_from
from skills_app.admin.views import page_response, skill_or_404
from skills_app.library.scopes import LIBRARY
from skills_app.models import Skill

SOURCE = "admin"


def may_remove(user: Person, skill: Skill) -> bool:
    """Return whether `user` may delete the skill here.

    Files in directories must be deleted there.
    """
    if skill.agent is not None:
        return may_change_skills(user, skill.agent)
    return skill.scope == LIBRARY and may_manage_library(user)


def remove_page(page: JournalAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """Ask whether to delete the skill. A POST deletes it, if its version is still the one shown."""
    skill = skill_or_404(page, request, pk)
    user = person(request)
    if not may_remove(user, skill):
        raise PermissionDenied
    status, message = 200, ""
    if request.method == "POST":
        base = request.POST.get("base_version", "")
        try:
            if base != str(skill.version):
                raise Conflict(
                    gettext("The skill has changed. Reload it and try again."), code="stale"
                )
            if skill.agent is not None:
                remove_skill(skill.agent, skill.pk, by=user, source=SOURCE)
            else:
                delete_skill_of_library(
                    skill.pk, by=user, base_version=skill.version, source=SOURCE
                )
        except ServiceError as error:
            status, message = 409, visible(error.message)
        else:
            page.log_change(request, skill, "Deleted the skill.")
            text = gettext("The skill %(skill)s is deleted. Old runs keep it.")
            page.report(request, text % {"skill": visible(skill.name)})
            return HttpResponseRedirect(
                reverse(f"{page.admin_site.name}:skills_app_skill_changelist")
            )
    return page_response(
        page,
        request,
        "remove.html",
        status=status,
        title=gettext("Delete %(skill)s?") % {"skill": visible(skill.name)},
        skill=skill,
        skill_name=visible(skill.name),
        place=where_from(skill),
        message=message,
    )
