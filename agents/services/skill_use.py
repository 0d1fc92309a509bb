"""The ledger of what runs do with skills. Each function belongs to the commit of a call."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.models import ActiveSkill, SkillUse, UseKind
from skills_app.package import SKILL_FILE
from skills_app.pinned import PinnedSkill


def note_loaded(run_id: str, thread_id: str, call_id: str, skills: Sequence[PinnedSkill]) -> None:
    """The skills are active in the thread from now on."""
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
    """Files of skills were read or run. `activates` are active from now on by that."""
    for skill in activates:
        _activate(thread_id, skill)
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
