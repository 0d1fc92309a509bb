"""Size limits of a package. Sources check them while they read, to read no more than necessary."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.library.package import SKILL_FILE, PackageFile
from skills_app.library.problems import Problem, error
from skills_app.settings import SkillSettings


def is_skill_file(name: str) -> bool:
    """Return whether `name` (no path) is the file that makes a directory a package."""
    return name in (SKILL_FILE, SKILL_FILE.lower())


def file_limit(path: str) -> int:
    """Return the most bytes that the file `path` of a package may have."""
    limits = SkillSettings.now()
    return limits.BODY_BYTES if is_skill_file(path) else limits.FILE_BYTES


def limit_problems(files: Sequence[PackageFile]) -> list[Problem]:
    """Return the limits that `files` exceed."""
    limits = SkillSettings.now()
    problems = [
        file_too_large(file.path) for file in files if len(file.data) > file_limit(file.path)
    ]
    if len(files) > limits.FILES:
        problems.append(too_many_files())
    if sum(len(file.data) for file in files) > limits.PACKAGE_BYTES:
        problems.append(package_too_large())
    return problems


def too_many_files() -> Problem:
    limit = SkillSettings.now().FILES
    return error(
        "too_many", f"The package has more than {limit:,} files: leave out what is not needed."
    )


def package_too_large() -> Problem:
    limit = SkillSettings.now().PACKAGE_BYTES
    return error(
        "too_large",
        f"The package exceeds the limit of {limit:,} bytes: leave out what is not needed.",
    )


def file_too_large(path: str) -> Problem:
    limit = file_limit(path)
    return error("too_large", f"The file exceeds the limit of {limit:,} bytes: shorten it.", path)
