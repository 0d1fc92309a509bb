"""Validate a skill by the strict specification and by Vel's own rules.

An empty list means that the public reference validator reports no problems either. Warnings are
problems that Vel accepts and that validator, or another reader, does not. A field that is too long
is an error here, because only an import shortens it.
"""

from __future__ import annotations

from pathlib import Path

from skills_app.library.package import Package
from skills_app.library.problems import Problem, strictly
from skills_app.library.sources.archive import archive_package
from skills_app.library.sources.folder import folder_package
from skills_app.library.strict import strict_problems


def validate(path: Path | str) -> list[Problem]:
    """Return all problems of the package in the directory `path`, each with its fix.

    A path that is missing, not a directory, or without SKILL.md is one problem.
    """
    package, problems = folder_package(Path(path))
    missing = [problem for problem in problems if problem.code == "missing"]
    return missing or with_strict(package, problems)


def validate_archive(data: bytes, filename: str) -> list[Problem]:
    """Return the problems of an uploaded file, as `validate` does for a directory.

    The file is a zip or `.skill` archive, or a SKILL.md.
    """
    return with_strict(*archive_package(data, filename))


def with_strict(package: Package | None, problems: list[Problem]) -> list[Problem]:
    """Return `problems`, and for a valid package also its problems for strict readers."""
    found = strictly(problems)
    return found if package is None else found + strict_problems(package.text)
