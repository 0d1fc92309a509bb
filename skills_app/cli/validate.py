"""`vel skills validate`: show the problems of a skill, without a database."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from agents.doors.cli.boot import with_settings
from agents.doors.cli.errors import FAILED, OK, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line
from skills_app.cli.listing import skills

with late_imports:
    from skills_app.library.package import Package
    from skills_app.library.problems import Problem, Severity
    from skills_app.library.sources.discover import read_each
    from skills_app.library.sources.folder import package_in
    from skills_app.library.validator import validate, validate_archive, with_strict
    from skills_app.settings import SkillSettings

_WIDTH = 600
"""The maximum length of a printed problem in characters."""


@skills.command("validate")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
@json_option
@with_settings
def validate_path(path: Path, strict: bool, as_json: bool) -> int:
    """Show all problems of a skill, and how to fix them. Does not execute it.

    PATH is a skill's directory, a directory of many, a SKILL.md, or a zip or .skill archive. An
    error means that Vel refuses the skill; a warning means that Vel accepts it, but other programs
    that follow the Agent Skills specification do not.
    """
    results = _results(path.absolute())
    if as_json:
        for place, problems in results.items():
            print(json.dumps(_as_json(place, problems)))
    else:
        for place, problems in results.items():
            _show(place, problems)
        _sum_up(results, strict)
    found = {problem.severity for problems in results.values() for problem in problems}
    failed = Severity.ERROR in found or (strict and bool(found))
    return FAILED if failed else OK


def _results(path: Path) -> dict[str, list[Problem]]:
    """Return the problems of each package by its path. A valid package has an empty list."""
    if path.is_file() and not path.is_symlink():
        return {str(path): validate_archive(_content(path), path.name)}
    found = validate(path)
    if [problem.code for problem in found] != ["missing"] or not path.is_dir():
        return {str(path): found}
    by_place: dict[str, list[Problem]] = {}

    def read(directory: int, name: str, place: str) -> tuple[Package | None, list[Problem]]:
        package, problems = package_in(directory, name)
        by_place[place] = with_strict(package, problems)
        return package, problems

    _, left_out = read_each(path, read)
    by_place |= left_out
    return {str(path / place): by_place[place] for place in sorted(by_place)} or {str(path): found}


def _content(path: Path) -> bytes:
    limit = SkillSettings.now().ARCHIVE_BYTES
    with path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise CliError(f"{path} exceeds the limit of {limit:,} bytes for archives.")
    return data


def _show(place: str, problems: Sequence[Problem]) -> None:
    print(f"{one_line(place, 300)}: {_verdict(problems)}")
    for problem in problems:
        print(f"  {problem.severity.value}: {one_line(str(problem), _WIDTH)}")


def _verdict(problems: Sequence[Problem]) -> str:
    if not problems:
        return "valid"
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    if errors:
        return "refused"
    return "accepted, with warnings: an export fixes them"


def _sum_up(results: dict[str, list[Problem]], strict: bool) -> None:
    problems = [problem for found in results.values() for problem in found]
    warnings = sum(problem.severity is Severity.WARNING for problem in problems)
    errors = len(problems) - warnings
    line = f"{len(results):,} checked, {errors:,} errors, {warnings:,} warnings."
    if warnings and not errors and not strict:
        line += " Only --strict fails for warnings."
    print(line, file=sys.stderr)


def _as_json(place: str, problems: Sequence[Problem]) -> dict[str, object]:
    return {
        "path": place,
        "valid": not any(problem.severity is Severity.ERROR for problem in problems),
        "problems": [
            {
                "severity": problem.severity.value,
                "code": problem.code,
                "path": problem.path,
                "message": problem.message,
            }
            for problem in problems
        ],
    }
