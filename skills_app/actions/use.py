"""Records of the use of skills by runs. Each function runs in the commit of a call."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.library.package import SKILL_FILE
from skills_app.library.pinned import PinnedSkill
from skills_app.models import ActiveSkill, SkillFile, SkillUse, UseKind


def note_loaded(run_id: str, thread_id: str, call_id: str, skills: Sequence[PinnedSkill]) -> None:
    """Record that the skills are active in the thread from now on."""
    for skill in skills:
        _activate(thread_id, skill)
    _note(run_id, call_id, UseKind.LOADED, skills)


def note_deactivated(run_id: str, thread_id: str, call_id: str, skill: PinnedSkill) -> None:
    ActiveSkill.objects.filter(thread_id=thread_id, name=skill.name).delete()
    _note(run_id, call_id, UseKind.DEACTIVATED, [skill])


def note_files(
    run_id: str,
    thread_id: str,
    call_id: str,
    files: Sequence[tuple[PinnedSkill, str]],
    activates: Sequence[PinnedSkill],
) -> None:
    """Record that files of skills were read or run, and that `activates` are active now.

    Only files that the versions contain are recorded: `files` come from the text of a command.
    """
    for skill in activates:
        _activate(thread_id, skill)
    named = SkillFile.objects.filter(
        version_id__in={skill.version_id for skill, _ in files},
        path__in={path for _, path in files},
    )
    there = set(named.order_by().values_list("version_id", "path"))
    SkillUse.objects.bulk_create(
        [
            SkillUse(
                run_id=run_id,
                version_id=skill.version_id,
                kind=UseKind.MOUNTED if path == SKILL_FILE else UseKind.FILE,
                path=path,
                call_id=call_id,
            )
            for skill, path in files
            if (skill.version_id, path) in there
        ]
    )


def _activate(thread_id: str, skill: PinnedSkill) -> None:
    ActiveSkill.objects.update_or_create(
        thread_id=thread_id, name=skill.name, defaults={"version_id": skill.version_id}
    )


def _note(run_id: str, call_id: str, kind: UseKind, skills: Sequence[PinnedSkill]) -> None:
    SkillUse.objects.bulk_create(
        [
            SkillUse(run_id=run_id, version_id=skill.version_id, kind=kind, call_id=call_id)
            for skill in skills
        ]
    )
