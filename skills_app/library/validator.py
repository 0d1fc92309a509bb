"""Whether a directory holds a skill, by the letter of the specification and by Vel's own rules.

`[]` means: the public reference validator has nothing to say either. Warnings are what Vel takes
and that validator, or another reader, does not.
"""

from __future__ import annotations

from pathlib import Path

from skills_app.library.package import Package
from skills_app.library.problems import Problem
from skills_app.library.sources.archive import archive_package
from skills_app.library.sources.folder import folder_package
from skills_app.library.strict import strict_problems


def validate(path: Path | str) -> list[Problem]:
    """All problems of the package in the directory `path`, each with what to change.

    A path that is missing, no directory, or without SKILL.md is one problem.
    """
    package, problems = folder_package(Path(path))
    missing = [problem for problem in problems if problem.code == "missing"]
    return missing or with_strict(package, problems)


def validate_archive(data: bytes, filename: str) -> list[Problem]:
    """As `validate`, for an uploaded file: a zip or `.skill` archive, or a SKILL.md."""
    return with_strict(*archive_package(data, filename))


def with_strict(package: Package | None, problems: list[Problem]) -> list[Problem]:
    """`problems`, and what strict readers say of a package that Vel would take."""
    return problems if package is None else problems + strict_problems(package.text)
