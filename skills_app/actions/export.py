"""Export of a version of a skill as an archive for other programs."""

from __future__ import annotations

from dataclasses import dataclass

from agents.services.errors import Conflict
from skills_app.actions.versions import version_files
from skills_app.library.errors import InvalidSkill
from skills_app.library.export import export_files, write_archive
from skills_app.models import SkillVersion, Trust


@dataclass(frozen=True, slots=True)
class ExportedSkill:
    """A zip and its file name."""

    name: str
    data: bytes


def export_version(version: SkillVersion) -> ExportedSkill:
    """Return `version` as a zip; its head follows the specification strictly.

    Raises `Conflict` for a version in quarantine, and for a head that is too long.
    """
    head = version.fields
    if version.trust == Trust.QUARANTINED:
        raise Conflict(
            f"Version {version.number} of {head.name} is in quarantine: read its files one by one.",
            code="quarantined",
        )
    try:
        files = export_files(version_files(version.pk), head)
        return ExportedSkill(f"{head.name}.zip", write_archive(head.name, files))
    except InvalidSkill as problem:
        raise Conflict(f"{head.name} cannot be exported. {problem}", code="no_export") from None
