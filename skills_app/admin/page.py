"""Data for the parts of a skill's page about one of its versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from agents.doors.admin.journal import tag
from agents.doors.admin.text import shown
from agents.hidden_text import visible
from agents.middleware.registry import known_tool_names
from agents.models import Agent
from agents.selectors.visible import Person, agents_for, runs_for
from skills_app.library.allowed_tools import NEVER_REMOVED, tools_named
from skills_app.library.package import Head
from skills_app.library.scopes import BUILT_IN, LIBRARY, describe_scope
from skills_app.models import Skill, SkillSetEntry, SkillUse, SkillVersion, Trust
from skills_app.queries.packages import package_entries

SEVERITIES = ("danger", "warning", "note")
FINDINGS_SHOWN = 300
VERSIONS_SHOWN = 100
RUNS_SHOWN = 20
AGENTS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ShownFinding:
    path: str
    place: str
    line: int
    message: str
    excerpt: str
    code: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """The name of a required skill, and where skills of that name exist."""

    name: str
    places: str


@dataclass(frozen=True, slots=True)
class ToolsLeft:
    """The effect of `allowed-tools` in Vel. `unknown` are names that no tool of Vel has."""

    said: tuple[str, ...]
    left: tuple[str, ...]
    unknown: tuple[str, ...]
    narrows: bool


def where_from(skill: Skill) -> str:
    """Return the origin of a skill: `library`, `built-in`, a directory, or its own agent."""
    if skill.agent is not None:
        return gettext("own skill of %(agent)s") % {"agent": visible(skill.agent.slug)}
    return visible(gettext(describe_scope(skill.scope)))


def finding_counts(version: SkillVersion | None) -> list[tuple[str, int]]:
    """Return (severity, number of findings), worst first, without zeros."""
    found = [str(finding.get("severity", "")) for finding in version.findings] if version else []
    return [(severity, found.count(severity)) for severity in SEVERITIES if severity in found]


def findings_by_severity(
    findings: Sequence[dict[str, Any]],
) -> list[tuple[str, list[ShownFinding], int]]:
    """Return (severity, shown findings, number of hidden ones), worst first."""
    groups = []
    for severity in SEVERITIES:
        found = [finding for finding in findings if finding.get("severity") == severity]
        if found:
            listed = [_shown_finding(finding) for finding in found[:FINDINGS_SHOWN]]
            groups.append((severity, listed, len(found) - len(listed)))
    return groups


def _shown_finding(finding: dict[str, Any]) -> ShownFinding:
    path, line = str(finding.get("path", "")), int(finding.get("line", 0))
    return ShownFinding(
        path,
        visible(f"{path}:{line}" if line else path),
        line,
        visible(str(finding.get("message", ""))),
        visible(str(finding.get("excerpt", ""))),
        visible(str(finding.get("code", ""))),
    )


def requirements(head: Head, skill: Skill) -> list[Requirement]:
    """Return the skills that `head` requires, with the places where agents would find them."""
    scopes = [BUILT_IN, LIBRARY, skill.scope]
    rows = Skill.objects.filter(name__in=head.requires, scope__in=scopes, is_deleted=False)
    places: dict[str, list[str]] = {}
    for name, scope in rows.exclude(current=None).order_by("scope").values_list("name", "scope"):
        places.setdefault(name, []).append(gettext(describe_scope(scope)))
    return [
        Requirement(visible(name), visible(", ".join(places.get(name, []))))
        for name in head.requires
    ]


def tools_left(head: Head) -> ToolsLeft | None:
    """Return the effect of the field `allowed-tools`, None if the head has none."""
    if head.allowed_tools is None:
        return None
    known = known_tool_names()
    tools, unknown = tools_named(head.allowed_tools, known)
    narrows = not head.allowed_tools or len(unknown) < len(head.allowed_tools)
    left = (tools | NEVER_REMOVED) & known if narrows else known
    return ToolsLeft(
        tuple(visible(name) for name in head.allowed_tools),
        tuple(sorted(left)),
        tuple(visible(name) for name in unknown),
        narrows,
    )


def head_facts(head: Head) -> list[tuple[str, str]]:
    """Return (label, text) of the fields in `head` that the page does not explain elsewhere."""
    facts = [
        (gettext("Title"), head.title),
        (gettext("Version"), head.version),
        (gettext("Author"), head.author),
        (gettext("License"), head.license),
        (gettext("Compatibility"), head.compatibility),
        (gettext("Tags"), ", ".join(head.tags)),
        (gettext("Triggers"), ", ".join(head.triggers)),
        (gettext("Priority"), str(head.priority) if head.priority else ""),
        (gettext("Off unless turned on"), "" if head.enabled else gettext("yes")),
    ]
    more = {**head.metadata, **head.extra}
    facts += sorted((name, value) for name, value in more.items())
    return [(visible(name), shown(value, limit=2_000).text) for name, value in facts if value]


def shown_files(version: SkillVersion) -> list[dict[str, Any]]:
    counts: dict[str, dict[str, int]] = {}
    for finding in version.findings:
        of_file = counts.setdefault(str(finding.get("path", "")), {})
        severity = str(finding.get("severity", ""))
        of_file[severity] = of_file.get(severity, 0) + 1
    return [
        {
            "path": entry.path,
            "name": visible(entry.path),
            "size": entry.size_bytes,
            "executable": entry.executable,
            "sha256": entry.sha256,
            "findings": [
                (severity, counts[entry.path][severity])
                for severity in SEVERITIES
                if counts.get(entry.path, {}).get(severity)
            ],
        }
        for entry in package_entries(version.pk)
    ]


def last_runs(skill: Skill, user: Person) -> list[dict[str, Any]]:
    """Return the last runs with the skill that `user` may read, and how they used it.

    A run has the skill if its set of skills contains a version of it.
    """
    versions = list(skill.versions.values_list("pk", flat=True))
    sets = SkillSetEntry.objects.filter(version__in=versions).values("skill_set")
    runs = list(
        runs_for(user)
        .filter(pinned__skill_set__in=sets)
        .select_related("agent_version__agent", "owner", "pinned")
        .order_by("-created_at")[:RUNS_SHOWN]
    )
    uses = SkillUse.objects.filter(run__in=runs, version__in=versions)
    done: dict[str, list[str]] = {}
    for run_id, kind, path in uses.values_list("run_id", "kind", "path").order_by("id"):
        done.setdefault(run_id, []).append(f"{kind} {visible(path)}" if path else str(kind))
    entries = SkillSetEntry.objects.filter(
        version__in=versions, skill_set__in={run.pinned.skill_set_id for run in runs}
    ).select_related("version")
    numbers = {entry.skill_set_id: entry.version.number for entry in entries}
    return [
        {
            "run": run,
            "agent": visible(run.agent_version.agent.slug),
            "version": numbers.get(run.pinned.skill_set_id, ""),
            "did": ", ".join(list(dict.fromkeys(done.get(run.pk, [])))[:10])
            or gettext("shown only"),
        }
        for run in runs
    ]


def agents_of(skill: Skill, user: Person) -> list[tuple[Agent, bool]]:
    """Return (agent, enabled) for the agents for which somebody enabled or disabled the skill.

    Agents that `user` may not use are omitted. At most `AGENTS_SHOWN`.
    """
    choices = skill.choices.filter(agent__in=agents_for(user).values("pk"))
    rows = choices.select_related("agent").order_by("agent__name", "agent")[:AGENTS_SHOWN]
    return [(choice.agent, choice.enabled) for choice in rows]


def trust_tag(trust: str) -> SafeString:
    return tag(f"trust-{trust}", str(Trust(trust).label))


def finding_tags(counts: list[tuple[str, int]]) -> SafeString:
    """Return coloured tags such as `2 danger`. The severities are Vel's, not the package's."""
    return format_html_join(
        " ",
        '<span class="vel-tag vel-severity-{}">{} {}</span>',
        ((severity, number, severity) for severity, number in counts),
    )
