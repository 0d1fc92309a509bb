"""Filters and annotated columns of the list of skills."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import PermissionsMixin
from django.db.models import (
    BooleanField,
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.dashboard_boxes import DashboardBox
from agents.hidden_text import visible
from agents.selectors.visible import VIEW_ALL, Person
from skills_app.library.scopes import BUILT_IN, LIBRARY, directory_scope
from skills_app.models import AgentSkill, Skill, SkillUse, SkillVersion, Trust
from skills_app.queries.packages import skills_for

_PLACES = {
    "library": Q(scope=LIBRARY),
    "built-in": Q(scope=BUILT_IN),
    "directory": Q(scope__startswith=directory_scope("")),
    "own": Q(agent__isnull=False),
}


def skills_to_look_at(user: Person) -> QuerySet[Skill]:
    """Return the skills that `user` may see in the admin.

    People with `view_all_runs` also see those of other people's agents and threads.
    """
    if isinstance(user, PermissionsMixin) and user.has_perm(VIEW_ALL):
        return Skill.objects.filter(is_deleted=False)
    return skills_for(user)


def with_columns(skills: QuerySet[Skill]) -> QuerySet[Any]:
    """Annotate the columns of the list.

    `latest_trust` is the trust of the latest version, and `waits` is true if that version waits
    for a decision. `on` and `off` count the agents for which somebody enabled or disabled the
    skill. `last_use` is a time, or None.
    """
    latest = SkillVersion.objects.filter(skill=OuterRef("pk"), number=OuterRef("version"))
    # A version that the scan quarantined awaits a decision; one that a person quarantined does not.
    open_versions = latest.exclude(content=None).filter(
        ~Q(trust=Trust.QUARANTINED) | Q(reviewed_by=None)
    )
    uses = SkillUse.objects.filter(version__skill=OuterRef("pk")).order_by("-id")
    return skills.annotate(
        latest_trust=Subquery(latest.values("trust")[:1]),
        waits=Case(
            When(current__number=F("version"), then=Value(False)),
            default=Exists(open_versions),
            output_field=BooleanField(),
        ),
        on=_choices(True),
        off=_choices(False),
        last_use=Subquery(uses.values("created_at")[:1]),
    )


def _choices(enabled: bool) -> Coalesce:
    found = AgentSkill.objects.filter(skill=OuterRef("pk"), enabled=enabled).order_by()
    counted = found.values("skill").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


class PlaceFilter(admin.SimpleListFilter):
    title = _("where from")
    parameter_name = "place"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("library", gettext("library")),
            ("built-in", gettext("built-in")),
            ("directory", gettext("directories")),
            ("own", gettext("agents' own")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Skill]) -> QuerySet[Skill]:
        location = _PLACES.get(self.value() or "")
        return queryset if location is None else queryset.filter(location)


class TrustFilter(admin.SimpleListFilter):
    """Filters by the trust of the current version, or of the latest one if none is current."""

    title = _("trust")
    parameter_name = "trust"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in Trust.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Skill]) -> QuerySet[Skill]:
        trust = self.value()
        if trust is None:
            return queryset
        return queryset.filter(Q(current__trust=trust) | Q(current=None, latest_trust=trust))


class WaitingFilter(admin.SimpleListFilter):
    title = _("review")
    parameter_name = "waiting"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", gettext("waits")), ("no", gettext("does not wait"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() is None else queryset.filter(waits=self.value() == "yes")


SHOWN = 5


def quarantine(user: Person) -> dict[str, Any]:
    found = (
        skills_to_look_at(user)
        .filter(is_deleted=False, versions__trust=Trust.QUARANTINED)
        .distinct()
        .order_by("name")
    )
    return {
        "count": found.count(),
        "skills": [{"pk": skill.pk, "name": visible(skill.name)} for skill in found[:SHOWN]],
    }


QUARANTINE_BOX = DashboardBox(Skill, "skills_app/admin/quarantine.html", quarantine)
