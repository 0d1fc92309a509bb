"""`vel skills search`: the skills that match a request, best first."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line
from skills_app.cli.listing import agent_option, skills

with late_imports:
    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import agent_named
    from skills_app.actions.library import sync_shared_skills
    from skills_app.cli.find import library_user, place_of, skills_of
    from skills_app.library.search.ranking import FIRST, SHOWN
    from skills_app.library.skill import Skill, load_skills
    from skills_app.models import SkillVersion, Trust
    from skills_app.queries.available import available_skills
    from skills_app.queries.index import search_skills
    from skills_app.queries.stored import RankedVersion, rank_versions


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result. `source` is the place as in `vel skills list`, or a directory."""

    name: str
    score: float
    description: str
    trust: str
    source: str


@skills.command("search")
@click.argument("query", metavar="QUERY")
@agent_option
@click.option(
    "--skills",
    "directories",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Also search this directory of skills; can be repeated.",
)
@with_database
@json_option
def search(query: str, agent: str | None, directories: tuple[Path, ...], as_json: bool) -> None:
    """Show the skills that match QUERY, best first.

    QUERY describes a task in your own words. An empty QUERY shows all skills.

    A score near 1 means that the skill is for exactly this request; below 0.2 the match is most
    likely chance. With --json, each line is a JSON object.
    """
    rows, names = _stored(query, agent)
    rows += _in_directories(query, [directory.absolute() for directory in directories], names)
    rows.sort(key=lambda row: (-row.score, row.name, row.source))
    shown = [
        row
        for place, row in enumerate(rows)
        if row.score >= SHOWN or place < FIRST or not query.strip()
    ]
    if as_json:
        for row in shown:
            print(json.dumps(asdict(row)))
        return
    if not shown:
        print(f"No skill matches {one_line(query, 100)!r}.", file=sys.stderr)
        return
    print_table(
        ("SCORE", "NAME", "TRUST", "FROM", "DESCRIPTION"),
        (
            (
                f"{row.score:.2f}",
                one_line(row.name, 64),
                row.trust,
                one_line(row.source, 60),
                one_line(row.description, 120),
            )
            for row in shown
        ),
    )


def _stored(query: str, agent: str | None) -> tuple[list[Row], set[str]]:
    """Return (matches among the readable skills, names of all readable skills).

    With `agent`, the readable skills are those that its next run gets.
    """
    user = library_user()
    sync_shared_skills()
    if agent is None:
        readable = skills_of(user, None)
        names = set(readable.values_list("name", flat=True))
        return list(_rows(search_skills(query, readable))), names
    found = agent_named(user, agent)
    available = available_skills(found.pk, built_in=found.builtin_skills).versions
    ranked = rank_versions(query, [version.pk for version in available])
    answers = [version for version in ranked if version.score or not query.strip()]
    return list(_rows(answers)), {version.name for version in ranked}


def _rows(ranked: Sequence[RankedVersion]) -> Iterator[Row]:
    versions = SkillVersion.objects.select_related("skill__agent").in_bulk(
        [version.version_id for version in ranked]
    )
    for one in ranked:
        version = versions[one.version_id]
        yield Row(
            one.name,
            one.score,
            version.fields.description,
            version.trust,
            place_of(version.skill),
        )


def _in_directories(query: str, directories: Sequence[Path], names: set[str]) -> Iterator[Row]:
    """Yield the matches in `directories`, and print problems.

    Skills whose name is in `names` are skipped. The names of the others are added to `names`.
    """
    for directory in directories:
        loaded, problems = load_skills(directory)
        for problem in problems:
            print(one_line(str(problem), 500), file=sys.stderr)
        for skill in loaded:
            if skill.name in names:
                line = f"{directory}: the name {skill.name} is taken by a skill that comes before."
                print(one_line(line, 500), file=sys.stderr)
                continue
            names.add(skill.name)
            yield from _row_of(query, skill, directory)


def _row_of(query: str, skill: Skill, directory: Path) -> Iterator[Row]:
    score = skill.matches_query(query)
    if (score or not query.strip()) and skill.enabled:
        yield Row(skill.name, score, skill.description, str(Trust.LOCAL.value), str(directory))
