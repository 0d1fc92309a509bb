"""Read the skills of an agent and of the library, and their use by runs, for people."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from agents.models import Agent, Run
from agents.selectors.visible import Person
from skills_app.library.scopes import BUILT_IN, LIBRARY
from skills_app.models import AgentSkill, Skill, SkillUse, SkillVersion, Trust, UseKind
from skills_app.queries.available import available_skills, scopes_of


@dataclass(frozen=True, slots=True)
class AgentSkillRow:
    """A skill that an agent has or could have.

    `version` is the one that agents get, None if none was accepted. `enabled` says that the agent
    has the skill, unless it `collides`: a skill with the same name or a lookalike of it has
    precedence. `waits` says that a later version, or the first one, awaits a decision.
    """

    skill: Skill
    version: SkillVersion | None
    enabled: bool
    waits: bool
    collides: bool


@dataclass(frozen=True, slots=True)
class VersionUsage:
    """The use of a version by runs.

    The numbers count runs, `files` counts reads of files. `endings` has the number of runs that
    loaded the skill or read its files, by status.
    """

    version: SkillVersion
    shown: int
    loaded: int
    files: int
    endings: dict[str, int]


def agent_skills(agent: Agent) -> list[AgentSkillRow]:
    """Return the skills that `agent` has or could have, by name.

    Skills with the same name are in the order of `scopes_of`. `available_skills` decides which one
    keeps the name. Skills in directories that the caller of a thread has named for that thread are
    not included.
    """
    scopes = scopes_of(agent.pk, built_in=agent.builtin_skills, directories=())
    rank = {scope: position for position, scope in enumerate(scopes)}
    choices = dict(AgentSkill.objects.filter(agent=agent).values_list("skill_id", "enabled"))
    skills = with_waiting(Skill.objects.filter(scope__in=scopes, is_deleted=False))
    available = available_skills(agent.pk, built_in=agent.builtin_skills)
    given = {version.skill_id for version in available.versions}
    rows: list[AgentSkillRow] = []
    for skill in sorted(
        skills.select_related("current"), key=lambda skill: (skill.name, rank[skill.scope])
    ):
        version = skill.current
        enabled = False
        if version is not None and version.trust != Trust.QUARANTINED:
            by_itself = skill.scope != LIBRARY and version.fields.enabled
            enabled = choices.get(skill.pk, by_itself)
        collides = enabled and skill.pk not in given
        rows.append(AgentSkillRow(skill, version, enabled, skill.waits, collides))  # type: ignore[attr-defined]  # annotated
    return rows


def with_waiting(skills: QuerySet[Skill]) -> QuerySet[Skill]:
    """Annotate `waits`: whether a version later than the current one awaits a decision."""
    undecided = SkillVersion.objects.filter(
        Q(number__gt=OuterRef("current__number")) | Q(skill__current=None),
        skill=OuterRef("pk"),
        content__isnull=False,
        accepted_at=None,
        reviewed_at=None,
    )
    return skills.annotate(waits=Exists(undecided))


def library_for(user: Person) -> QuerySet[Skill]:
    """Return the skills of the library and the built-in ones, which every user may read.

    Each has its current version and `waits`, as in `AgentSkillRow`.
    """
    if not user.is_authenticated:
        return Skill.objects.none()
    shared = Skill.objects.filter(scope__in=(LIBRARY, BUILT_IN), is_deleted=False)
    return with_waiting(shared).select_related("current").order_by("name", "scope")


def skill_usage(skill: Skill) -> list[VersionUsage]:
    """Return the use of each version of `skill` by runs, latest version first."""
    versions = skill.versions.exclude(content=None).order_by("-number")
    usage = []
    for version in versions.defer("content"):
        uses = SkillUse.objects.filter(version=version)
        loaded = uses.filter(kind__in=(UseKind.LOADED, UseKind.MOUNTED))
        users = Run.objects.filter(
            pk__in=uses.exclude(kind=UseKind.DEACTIVATED).values("run_id")
        ).order_by()
        usage.append(
            VersionUsage(
                version=version,
                shown=Run.objects.filter(pinned__skill_set__entries__version=version).count(),
                loaded=loaded.values("run_id").distinct().count(),
                files=uses.filter(kind=UseKind.FILE).count(),
                endings=dict(
                    users.values("status").annotate(runs=Count("pk")).values_list("status", "runs")
                ),
            )
        )
    return usage
