"""Read uploaded packages in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.files.uploadedfile import UploadedFile

from agents.services.errors import InvalidRequest
from skills_app.library.package import Package
from skills_app.library.problems import InvalidSkill, Problem
from skills_app.library.sources.archive import read_archive
from skills_app.settings import SkillSettings


class InvalidPackage(InvalidRequest):
    """The uploaded file is not a valid skill. `problems` has all reasons."""

    code = "invalid_package"

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class PackageTooLarge(InvalidPackage):
    """The file is larger than an archive may be."""

    code = "package_too_large"


def read_upload(file: UploadedFile[Any]) -> Package:
    """Return the package in an uploaded zip, `.skill` or SKILL.md file. Raises `InvalidPackage`."""
    limit = SkillSettings.now().ARCHIVE_BYTES
    if (file.size or 0) > limit:
        raise PackageTooLarge(f"The file is larger than {limit:,} bytes: leave files out of it.")
    try:
        return read_archive(file.read(), file.name or "")
    except InvalidSkill as error:
        raise InvalidPackage(str(error), error.problems) from None


def origin_of(file: UploadedFile[Any]) -> str:
    """Return the sender's name of the file, for `SkillVersion.origin`."""
    return (file.name or "").replace("\0", "")
