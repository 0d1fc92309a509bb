"""The admin of skills: the list, reviews, contents, and use by runs.

Rows change only through services. A reviewer's decision applies to the shown hash.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin import strict_pages
from agents.doors.admin.journal import JournalAdmin, person, tag
from agents.hidden_text import visible
from agents.models import Agent, Run
from skills_app.actions.library import sync_shared_skills
from skills_app.actions.rights import may_manage_library, may_review
from skills_app.admin import importing, page, removal, review, views
from skills_app.admin.filters import (
    PlaceFilter,
    TrustFilter,
    WaitingFilter,
    skills_to_look_at,
    with_columns,
)
from skills_app.library.scopes import BUILT_IN, LIBRARY, directory_of
from skills_app.models import Skill
from skills_app.queries.packages import version_of, versions_of
from skills_app.queries.skills import skill_usage

PROBLEMS_TOLD = 10


@admin.register(Skill)
class SkillAdmin(JournalAdmin):
    """Skills of the library, of Vel, of the settings' directories, and of the user's agents."""

    page_template = "skills_app/admin/skill.html"
    change_list_template = "skills_app/admin/list.html"
    list_display = [
        "shown_name",
        "place",
        "trust",
        "versions",
        "findings",
        "review",
        "agents_with_it",
        "used",
    ]
    list_filter = [PlaceFilter, TrustFilter, WaitingFilter]
    list_select_related = ["current", "agent"]
    search_fields = ["name", "description", "=agent__slug"]
    search_help_text = _("A part of a name or a description, or an agent's slug.")
    ordering = ["name", "scope"]

    class Media:
        css = {"all": ["agents/web/review.css", "agents/admin/skills.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_columns(skills_to_look_at(person(request))).defer(
            "current__content", "current__head"
        )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Also allow everybody who may manage the library or review skills.

        The login page calls this without a user.
        """
        if not request.user.is_authenticated:
            return False
        user = person(request)
        return (
            super().has_view_permission(request, obj)
            or may_manage_library(user)
            or may_review(user)
        )

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) or self.has_view_permission(request)

    def get_urls(self) -> list[Any]:
        routes: dict[str, tuple[str, Callable[..., HttpResponse]]] = {
            "import/": ("import", importing.import_page),
            "<int:pk>/versions/<int:number>/files/": ("file", views.file_page),
            "<int:pk>/versions/<int:number>/download/": ("download", views.download),
            "<int:pk>/versions/<int:number>/export/": ("export", views.export),
            "<int:pk>/versions/<int:number>/review/": ("review", review.review_page),
            "<int:pk>/compare/": ("compare", views.compare_page),
            "<int:pk>/remove/": ("remove", removal.remove_page),
        }
        own = [
            path(
                route,
                self.admin_site.admin_view(partial(view, self)),
                name=f"skills_app_skill_{name}",
            )
            for route, (name, view) in routes.items()
        ]
        return [*own, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, after updating the rows of skills in directories as a run does."""
        if self.has_view_permission(request) and request.method == "GET":
            problems = sync_shared_skills()
            for location, messages in list(problems.items())[:PROBLEMS_TOLD]:
                self.report(
                    request, visible(f"{location}: {' '.join(messages)}"[:500]), failed=True
                )
        may = {
            "may_import": may_manage_library(person(request)) or importing.own_agents(request),
        }
        return super().changelist_view(request, {**may, **(extra_context or {})})

    def change_view(self, *args: Any, **kwargs: Any) -> HttpResponse:
        return strict_pages.strict(super().change_view(*args, **kwargs))

    @admin.display(description=_("name"), ordering="name")
    def shown_name(self, skill: Skill) -> str:
        return visible(skill.name)

    @admin.display(description=_("where from"), ordering="scope")
    def place(self, skill: Skill) -> str:
        return page.where_from(skill)

    @admin.display(description=_("trust"), ordering="current__trust")
    def trust(self, skill: Any) -> SafeString | str:
        trust = skill.current.trust if skill.current else skill.latest_trust
        return page.trust_tag(trust) if trust else "–"

    @admin.display(description=_("version"), ordering="version")
    def versions(self, skill: Skill) -> str:
        if skill.current is None:
            return gettext("none of %(count)s") % {"count": skill.version}
        current = skill.current.number
        if current == skill.version:
            return str(current)
        return gettext("%(count)s of %(all)s") % {"count": current, "all": skill.version}

    @admin.display(description=_("findings"))
    def findings(self, skill: Skill) -> SafeString | str:
        counts = page.finding_counts(skill.current)
        return page.finding_tags(counts) if counts else ""

    @admin.display(description=_("review"), ordering="waits")
    def review(self, skill: Any) -> SafeString | str:
        return tag("waiting", gettext("waits")) if skill.waits else ""

    @admin.display(description=_("agents"))
    def agents_with_it(self, skill: Any) -> str:
        """Return which agents have the skill: a number, `all`, or `all but` a number.

        A skill that all agents have shows no total, because not everybody may know the number of
        agents.
        """
        if skill.scope == LIBRARY:
            return str(skill.on)
        if skill.agent_id:
            return "0" if skill.off else "1"
        return gettext("all but %(count)s") % {"count": skill.off} if skill.off else gettext("all")

    @admin.display(description=_("last used"), ordering="last_use")
    def used(self, skill: Any) -> Any:
        return skill.last_use

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        user = person(request)
        requested = request.GET.get("version", "")
        version = (
            version_of(row, int(requested))
            if requested.isdecimal() and len(requested) < 9
            else None
        )
        version = version or version_of(row)
        head = version.fields if version else None
        return {
            "media": strict_pages.STYLES,
            "title": visible(row.name),
            "skill": row,
            "place": page.where_from(row),
            "description": visible(row.description),
            "version": version,
            "trust": page.trust_tag(version.trust) if version else "",
            "is_current": version is not None and version.pk == row.current_id,
            "facts": page.head_facts(head) if head else [],
            "requirements": page.requirements(head, row) if head else [],
            "tools": page.tools_left(head) if head else None,
            "tools_required": [visible(name) for name in head.tools_required] if head else [],
            "findings": page.findings_by_severity(version.findings) if version else [],
            "files": page.shown_files(version) if version else [],
            "versions": [
                {
                    "row": each,
                    "trust": page.trust_tag(each.trust),
                    "is_current": each.pk == row.current_id,
                    "waits": row.waits and each.number == row.version,
                    "counts": page.finding_tags(page.finding_counts(each)),
                    "origin": visible(each.origin),
                    "reason": visible(each.reason),
                }
                for each in versions_of(row)[: page.VERSIONS_SHOWN]
            ],
            "usage": skill_usage(row),
            "runs": page.last_runs(row, user),
            "can_see_runs": self.admin_site.get_model_admin(Run).has_view_permission(request),
            "agents": page.agents_of(row, user),
            "can_see_agents": self.admin_site.get_model_admin(Agent).has_view_permission(request),
            "may_review": may_review(user),
            "may_remove": removal.may_remove(user, row),
            "is_built_in": row.scope == BUILT_IN,
            "is_synced": row.scope == BUILT_IN or directory_of(row.scope) is not None,
        }
