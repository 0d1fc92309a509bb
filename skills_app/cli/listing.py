"""`vel skills` and its read-only commands. Texts from packages are made safe to print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line, visible

with late_imports:
    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import agent_named
    from skills_app.actions.library import sync_shared_skills
    from skills_app.cli.find import library_user, place_of, skill_named, skills_of, version_named
    from skills_app.models import Skill, SkillVersion, Trust
    from skills_app.queries.packages import as_text, package_entries, package_file
    from skills_app.queries.skills import AgentSkillRow, agent_skills, skill_usage

SEVERITIES = ("danger", "warning", "note")
FINDINGS_SHOWN = 50


name_argument = click.argument("name", metavar="NAME")
agent_option = click.option(
    "--agent",
    metavar="AGENT",
    help="Among the skills that this agent can have (a slug, or the start of an ID).",
)
version_option = click.option(
    "--version",
    "number",
    type=click.IntRange(min=1),
    help="The version; default: the one that agents get.",
)


@click.group(short_help="Find, import, review and give out skills.")
def skills() -> None:
    """Manage skills: a SKILL.md with instructions, and the files that belong to it.

    NAME may be PLACE:NAME if several skills have the name: library:NAME, built-in:NAME, or the slug
    of the agent that owns it.
    """


@skills.command("list")
@agent_option
@with_database
@json_option
def list_skills(agent: str | None, as_json: bool) -> None:
    """Show the skills; with --agent, those that the agent can have, and which of them are on."""
    user = library_user()
    for place, messages in sync_shared_skills().items():
        print(one_line(f"{place}: {' '.join(messages)}", 500), file=sys.stderr)
    if agent is not None:
        rows = [_agent_row(row) for row in agent_skills(agent_named(user, agent))]
    else:
        found = skills_of(user, None).select_related("current", "agent").order_by("name", "scope")
        rows = [_row(skill) for skill in found]
    if as_json:
        for row in rows:
            print(json.dumps(row, default=datetime.isoformat))
        return
    if not rows:
        print("No skills.", file=sys.stderr)
        return
    heads = ["NAME", "FROM", "VERSION", "TRUST", "FINDINGS", *(["ON"] if agent else [])]
    print_table([*heads, "DESCRIPTION"], (_cells(row, with_on=bool(agent)) for row in rows))


def _row(skill: Skill) -> dict[str, Any]:
    version = skill.current
    latest = version is not None and version.number == skill.version
    return {
        "id": skill.pk,
        "name": skill.name,
        "from": place_of(skill),
        "version": version.number if version else None,
        "latest_version": skill.version,
        "trust": version.trust if version else None,
        "waits": not latest,
        "findings": counts_of(version),
        "content_hash": version.content_hash if version else None,
        "description": skill.description,
    }


def _agent_row(row: AgentSkillRow) -> dict[str, Any]:
    state = "collides" if row.collides else "on" if row.enabled else "off"
    return {**_row(row.skill), "waits": row.waits, "state": state}


def _cells(row: dict[str, Any], *, with_on: bool) -> list[str]:
    number = "–" if row["version"] is None else str(row["version"])
    waits = f" ({row['latest_version']} waits)" if row["waits"] else ""
    found = ", ".join(f"{count} {severity}" for severity, count in row["findings"].items())
    return [
        one_line(row["name"], 64),
        one_line(row["from"], 60),
        number + waits,
        row["trust"] or "–",
        found or "–",
        *([row["state"]] if with_on else []),
        one_line(row["description"], 120),
    ]


def counts_of(version: SkillVersion | None) -> dict[str, int]:
    """Return the number of findings by severity, worst first, without zeros."""
    found = [str(finding.get("severity")) for finding in version.findings] if version else []
    return {severity: found.count(severity) for severity in SEVERITIES if severity in found}


@skills.command("show")
@name_argument
@click.option("--file", "path", metavar="PATH", help="Print only this file.")
@version_option
@agent_option
@with_database
@json_option
def show(name: str, path: str | None, number: int | None, agent: str | None, as_json: bool) -> None:
    """Show a skill's description, its files, and the findings of the scan.

    With --file, hidden characters appear as code points at a terminal; a pipe gets the exact bytes.
    """
    skill = skill_named(name, agent)
    version = version_named(skill, number)
    if path is not None:
        _show_file(version, path)
    elif as_json:
        print(json.dumps(_as_json(skill, version), default=datetime.isoformat))
    else:
        _show(skill, version)


def _show_file(version: SkillVersion, path: str) -> None:
    data = package_file(version.pk, path)
    if data is None:
        raise CliError(f"{one_line(str(version))} has no file {one_line(path)!r}.")
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    text = as_text(data)
    if text is None:
        raise CliError(
            f"{one_line(path)} is not text ({len(data):,} bytes): send it to a file with >."
        )
    print(visible(text))


def _as_json(skill: Skill, version: SkillVersion) -> dict[str, Any]:
    return {
        **_row(skill),
        "shown_version": version.number,
        "shown_trust": version.trust,
        "shown_hash": version.content_hash,
        "head": version.head,
        "all_findings": version.findings,
        "files": [
            {"path": file.path, "size_bytes": file.size_bytes, "executable": file.executable}
            for file in package_entries(version.pk)
        ],
        "versions": [
            {"number": each.number, "trust": each.trust, "created_at": each.created_at}
            for each in skill.versions.exclude(content=None)
        ],
    }


def _show(skill: Skill, version: SkillVersion) -> None:
    head = version.fields
    current = skill.current
    gets = "which agents get" if current and current.pk == version.pk else "no agent gets it"
    if current and current.pk != version.pk:
        gets = f"agents get version {current.number}"
    facts = [
        ("Name", skill.name),
        ("From", place_of(skill)),
        ("Version", f"{version.number} of {skill.version} ({version.trust}), {gets}"),
        ("Hash", version.content_hash),
        ("Description", head.description),
        ("License", head.license),
        ("Compatibility", head.compatibility),
        ("Tags", ", ".join(head.tags)),
        ("Triggers", ", ".join(head.triggers)),
        ("Requires", ", ".join(head.requires)),
        ("Allowed tools", "" if head.allowed_tools is None else " ".join(head.allowed_tools)),
        ("Imported from", version.origin),
        ("Reason", version.reason),
    ]
    for label, value in facts:
        if value:
            print(f"{label + ':':<15} {one_line(value, 1_500)}")
    print("Files:")
    for file in package_entries(version.pk):
        print(f"{file.size_bytes:>12,}  {'x' if file.executable else ' '} {one_line(file.path)}")
    print_findings(version.findings)


def print_findings(findings: Iterable[dict[str, Any]]) -> None:
    """Print one line for each finding, worst first."""
    ordered = sorted(
        findings,
        key=lambda found: (
            SEVERITIES.index(found["severity"]) if found.get("severity") in SEVERITIES else 0
        ),
    )
    if not ordered:
        print("The scan found nothing. This does not prove that the skill is safe.")
        return
    print("Findings:")
    for found in ordered[:FINDINGS_SHOWN]:
        line = f":{found['line']}" if found.get("line") else ""
        excerpt = f": {one_line(found['excerpt'], 80)}" if found.get("excerpt") else ""
        print(
            f"  {found.get('severity')}: {one_line(found.get('path', ''))}{line}: "
            f"{one_line(found.get('message', ''), 200)}{excerpt}"
        )
    if len(ordered) > FINDINGS_SHOWN:
        print(f"  … and {len(ordered) - FINDINGS_SHOWN} more.")


@skills.command("usage")
@name_argument
@agent_option
@with_database
@json_option
def usage(name: str, agent: str | None, as_json: bool) -> None:
    """Show the use of each version by runs, and the outcomes of these runs."""
    found = skill_usage(skill_named(name, agent))
    if as_json:
        for use in found:
            row = {
                "version": use.version.number,
                "shown": use.shown,
                "loaded": use.loaded,
                "files": use.files,
                "endings": use.endings,
            }
            print(json.dumps(row))
        return
    print_table(
        ("VERSION", "TRUST", "RUNS THAT HAD IT", "LOADED", "FILES", "ENDINGS"),
        (
            (
                str(use.version.number),
                str(Trust(use.version.trust).value),
                str(use.shown),
                str(use.loaded),
                str(use.files),
                ", ".join(f"{runs} {status}" for status, runs in use.endings.items()) or "–",
            )
            for use in found
        ),
    )
