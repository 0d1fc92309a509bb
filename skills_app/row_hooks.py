"""Hooks that copy skills with runs and threads, and check the directories of callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from agents.kernel.row_hooks import Protects, RowHooks
from agents.models import Run, Thread, ToolCall
from skills_app.actions.sync import check_skill_directories
from skills_app.models import ActiveSkill, RunSkillSet, SkillUse, UseKind


class SkillRows(RowHooks):
    order: ClassVar[int] = 900

    def copied(self, run: Run, copy: Run) -> None:
        found = RunSkillSet.objects.filter(run=run).values_list("skill_set_id", flat=True).first()
        if found is not None:
            RunSkillSet.objects.create(run=copy, skill_set_id=found)

    def forked(self, source: Run, turn: int, thread: Thread) -> None:
        _copy_active(source, turn, thread)

    def check_directories(
        self, directories: Sequence[str], workspace_path: str, protects: Protects
    ) -> None:
        check_skill_directories(directories, workspace_path, protects)


def _copy_active(source: Run, turn: int, thread: Thread) -> None:
    """Copy the skills that were active at the turn, because they may limit the tools."""
    runs = Run.objects.filter(thread=source.thread_id, number__lte=source.number)
    later = ToolCall.objects.filter(run=source, turn__gt=turn).values_list("call_id", flat=True)
    uses = SkillUse.objects.filter(run__in=runs).exclude(run=source, call_id__in=list(later))
    active: dict[str, int] = {}
    kept = ActiveSkill.objects.filter(thread=source.thread_id)
    by_reading = set(kept.values_list("version_id", flat=True))
    rows = uses.filter(kind__in=[UseKind.LOADED, UseKind.DEACTIVATED, UseKind.MOUNTED])
    for use in rows.select_related("version__skill").order_by("pk"):
        name = use.version.skill.name
        if use.kind == UseKind.DEACTIVATED:
            active.pop(name, None)
        elif use.kind == UseKind.LOADED or use.version_id in by_reading:
            active[name] = use.version_id
    ActiveSkill.objects.bulk_create(
        ActiveSkill(thread=thread, name=name, version_id=version)
        for name, version in active.items()
    )


ROW_HOOKS = [SkillRows]
