"""The commands of `vel skills` that import and export packages."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import FAILED, OK, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.terminal import one_line
from skills_app.cli.listing import (
    agent_option,
    name_argument,
    skills,
    version_option,
)

with late_imports:
    from django.contrib.auth.models import User

    from agents.doors.cli.find import agent_named
    from agents.models import Agent
    from agents.services.errors import NotAllowed, ServiceError
    from skills_app.actions.library import Imported, import_skill
    from skills_app.actions.rights import check_may_change, check_may_manage, check_may_review
    from skills_app.actions.versions import ExportedSkill, export_version
    from skills_app.cli.find import library_user, skill_named, version_named
    from skills_app.cli.listing import print_findings
    from skills_app.library.export import write_folder
    from skills_app.library.package import Package, PackageFile, errors_of
    from skills_app.library.problems import TOO_LONG, InvalidSkill, Problem
    from skills_app.library.scan import findings_json, has_danger, scan_package
    from skills_app.library.sources.archive import archive_package
    from skills_app.library.sources.discover import find_packages
    from skills_app.library.sources.folder import folder_package
    from skills_app.models import Trust
    from skills_app.settings import SkillSettings

DOOR = "cli"
_ARCHIVES = (".zip", ".skill")

Read: TypeAlias = "tuple[str, Package | None, Sequence[Problem]]"
"""(path, package, all problems) of one package. The package is None after an error."""


@skills.command("import")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--agent", metavar="AGENT", help="Import them as this agent's own skills.")
@click.option(
    "--accept",
    is_flag=True,
    help="Let agents use a new version of an existing skill without a review. For reviewers.",
)
@click.option("--dry-run", is_flag=True, help="Only show problems and findings.")
@click.option("--reason", default="", help="The reason, stored with the version.")
@with_database
def import_skills(
    paths: tuple[Path, ...], agent: str | None, accept: bool, dry_run: bool, reason: str
) -> int:
    """Import skills into the library, or for an agent. Does not execute them.

    PATH is a skill's directory, a directory of many, a SKILL.md, or a zip or .skill archive. Each
    is stored or refused separately; the exit code is 1 if any was refused.
    """
    user = library_user()
    own = agent_named(user, agent) if agent else None
    if not dry_run:
        _check_rights(user, own, accept=accept)
    counts: Counter[str] = Counter()
    for path in paths:
        for place, package, problems in _packages(path):
            if package is None:
                outcome = "refused"
                _print(outcome, place, "")
            elif dry_run:
                outcome = "fine"
                dangerous = has_danger(scan_package(package))
                _print(outcome, place, f"{package.head.name}{', dangerous' if dangerous else ''}")
            else:
                outcome = _import(package, place, user, own, accept, reason)
            for problem in _shown(problems, refused=package is None, dry_run=dry_run):
                print(f"{'':10}{problem.severity}: {one_line(str(problem), 500)}")
            if package is not None and dry_run:
                print_findings(findings_json(scan_package(package)))
            counts[outcome] += 1
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + ".")
    return FAILED if counts["refused"] else OK


def _shown(problems: Sequence[Problem], *, refused: bool, dry_run: bool) -> Sequence[Problem]:
    """Return the problems to print. An import only prints errors and shortened fields."""
    if refused:
        return errors_of(problems)
    return [problem for problem in problems if dry_run or problem.code == TOO_LONG]


def _check_rights(user: User, own: Agent | None, *, accept: bool) -> None:
    try:
        if own is not None:
            check_may_change(own, user)
        else:
            check_may_manage(user)
        if accept:
            check_may_review(user)
    except NotAllowed as error:
        name = user.get_username()
        raise CliError(
            f"{error.message} `vel user create {name} --admin` makes this account an "
            "administrator; with --agent, one of your agents gets it as its own skill."
        ) from None


def _import(
    package: Package, place: str, user: User, own: Agent | None, accept: bool, reason: str
) -> str:
    try:
        imported = import_skill(
            package,
            by=user,
            source=DOOR,
            origin=place,
            agent=own,
            accept=accept,
            reason=reason,
        )
    except ServiceError as error:
        _print("refused", place, one_line(error.message, 500))
        return "refused"
    outcome = _outcome(imported)
    version = imported.version
    _print(
        outcome, place, f"{package.head.name} v{version.number}, {len(version.findings)} findings"
    )
    return outcome


def _outcome(imported: Imported) -> str:
    if imported.version.trust == Trust.QUARANTINED:
        return "quarantined"
    if not imported.created:
        return "same"
    return "waits" if imported.waits else "imported"


def _print(outcome: str, place: str, what: str) -> None:
    print(f"{outcome:>11}  {one_line(place, 200)}{f': {one_line(what, 600)}' if what else ''}")


def _packages(path: Path) -> Iterator[Read]:
    """Yield the packages at `path`: a file, a package's directory, or a directory of packages."""
    try:
        status = path.stat()
    except OSError as error:
        raise CliError(f"{one_line(str(path))}: {error.strerror}.") from None
    if not stat.S_ISDIR(status.st_mode):
        yield _archive(path)
        return
    try:
        found = find_packages(path)
    except InvalidSkill as error:
        raise CliError(one_line(str(error), 500)) from None
    archives = sorted(
        entry for entry in path.iterdir() if entry.suffix.lower() in _ARCHIVES and entry.is_file()
    )
    if not found and not archives:
        raise CliError(
            f"{one_line(str(path))} contains no skill, which is a directory with a SKILL.md."
        )
    for place in found:
        package, problems = folder_package(place)
        yield str(place), package, problems
    if found != [path]:  # otherwise they are files of the package
        for archive in archives:
            yield _archive(archive)


def _archive(path: Path) -> Read:
    """Read an archive, at most up to the size limit."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise CliError(f"{one_line(str(path))} is not a plain file.")
            data = stream.read(SkillSettings.now().ARCHIVE_BYTES + 1)
    except OSError as error:
        raise CliError(f"{one_line(str(path))}: {error.strerror}.") from None
    package, problems = archive_package(data, path.name)
    return str(path), package, problems


@skills.command("export")
@name_argument
@click.argument("target", metavar="[DIR|FILE.zip]", required=False, type=click.Path(path_type=Path))
@version_option
@agent_option
@with_database
def export(name: str, target: Path | None, number: int | None, agent: str | None) -> None:
    """Write a skill into a new file or directory, for other programs.

    The fields of SKILL.md are in the strict form of the Agent Skills specification.
    """
    skill = skill_named(name, agent)
    version = version_named(skill, number)
    place = target or Path(f"{skill.name}.zip")
    exported = export_version(version)
    if place.suffix.lower() in _ARCHIVES:
        try:
            with open(place, "xb") as stream:
                stream.write(exported.data)
        except FileExistsError:
            raise CliError(f"{one_line(str(place))} already exists: name another file.") from None
    else:
        if place.is_dir() and place.name != skill.name:
            place = place / skill.name
        try:
            write_folder(place, _unpacked(exported))
        except InvalidSkill as error:
            raise CliError(one_line(str(error), 500)) from None
    print(f"{one_line(skill.name)} v{version.number} is in {one_line(str(place), 500)}.")


def _unpacked(exported: ExportedSkill) -> list[PackageFile]:
    """Return the files of an archive that this command has just made."""
    with zipfile.ZipFile(io.BytesIO(exported.data)) as archive:
        return [
            PackageFile(
                entry.filename.partition("/")[2],
                archive.read(entry),
                bool(entry.external_attr >> 16 & 0o100),
            )
            for entry in archive.infolist()
        ]
