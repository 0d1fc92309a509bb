"""The page of the library: everybody can browse, permitted people can import."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from agents.doors.web.pages import PersonRequest, page
from agents.hidden_text import visible
from agents.services.errors import InvalidRequest, ServiceError
from skills_app.actions.library import import_skill, sync_shared_skills
from skills_app.actions.rights import may_manage_library, may_review
from skills_app.actions.uploads import origin_of, read_upload
from skills_app.models import Trust
from skills_app.pages.agent_skills import SOURCE, imported_text, limited_package, reason_of
from skills_app.queries.packages import waiting_trusts
from skills_app.queries.search import SkillFilter, filter_skills, search_skills
from skills_app.queries.skills import library_for

SKILLS_A_PAGE = 50
FOUND = 30
SCOPES = ("library", "built-in")


@limited_package
@page
@require_http_methods(["GET", "HEAD", "POST"])
def library(request: PersonRequest) -> HttpResponse:
    """List skills. `?q=` searches; `trust`, `scope` and `tag` filter. A POST imports a package."""
    if request.method != "POST":
        return render(request, "skills_app/skill_library.html", _context(request))
    try:
        skill_id = _import(request)
    except ServiceError as error:
        problems = [str(held) for held in getattr(error, "problems", ())] or [error.message]
        context = {**_context(request), "problems": problems}
        return render(request, "skills_app/skill_library.html", context, status=error.http_status)
    return redirect("web:skill", skill_id=skill_id)


def _context(request: PersonRequest) -> dict[str, Any]:
    parameters = request.GET
    terms = SkillFilter(
        scope=parameters.get("scope", "") if parameters.get("scope") in SCOPES else "",
        trust=parameters.get("trust", "") if parameters.get("trust") in Trust.values else "",
        tag=parameters.get("tag", "")[:200],
    )
    query = parameters.get("q", "")[:500].replace("\0", "")
    sync_shared_skills()
    found = filter_skills(library_for(request.user), terms)
    context: dict[str, Any] = {
        "q": query,
        "terms": terms,
        "trust_choices": Trust.choices,
        "scopes": SCOPES,
        "is_narrowed": bool(query or terms != SkillFilter()),
        "may_manage": may_manage_library(request.user),
        "may_review": may_review(request.user),
    }
    if query.strip():
        skills = [hit.skill for hit in search_skills(found, query, limit=FOUND)]
        return {**context, "skills": skills, "trusts": waiting_trusts(skills)}
    rows = found.select_related("current").order_by("name", "scope")
    displayed = Paginator(rows, SKILLS_A_PAGE).get_page(parameters.get("page"))
    kept = {"scope": terms.scope, "trust": terms.trust, "tag": terms.tag}
    return {
        **context,
        "skills": list(displayed),
        "trusts": waiting_trusts(displayed),
        "page": displayed,
        "kept": urlencode({name: value for name, value in kept.items() if value}),
    }


def _import(request: PersonRequest) -> int:
    """Import the uploaded package, show a message, and return the skill's id."""
    file = request.FILES.get("file")
    if file is None:
        raise InvalidRequest(gettext("Choose a file: a zip, a .skill file or a SKILL.md."))
    result = import_skill(
        read_upload(file),
        by=request.user,
        source=SOURCE,
        origin=origin_of(file),
        accept=request.POST.get("accept") == "true",
        reason=reason_of(request),
    )
    message = imported_text(result)
    if result.created and result.waits:
        message = f"{message} {gettext('It waits: agents get it after a review.')}"
    messages.success(request, visible(message))
    return result.version.skill_id
