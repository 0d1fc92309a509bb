"""The skills of one run while it is driven: which it has, and which are active."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.models import Run
from skills_app.actions.sets import skills_in
from skills_app.library.pinned import PinnedSkill, by_name
from skills_app.models import ActiveSkill, Trust


@dataclass
class RunSkills:
    """`active` are loaded and not put away, in the order in which that was.

    `prompt_is_old`: a loaded skill belongs into the system prompt and is not there yet.
    """

    set_id: str | None
    pinned: dict[str, PinnedSkill]
    active: dict[str, PinnedSkill] = field(default_factory=dict)
    prompt_is_old: bool = False

    def activate(self, skills: Sequence[PinnedSkill]) -> None:
        for skill in skills:
            if skill.name not in self.active:
                self.active[skill.name] = skill
                self.prompt_is_old = True

    def deactivate(self, name: str) -> None:
        if self.active.pop(name, None) is not None:
            self.prompt_is_old = True


def skills_of(run: Run) -> RunSkills:
    """Reads the rows of a run whose skills are settled.

    What has been put in quarantine since then is not among them: neither loaded nor mounted again.
    """
    settled = skills_in(run.skill_set_id)
    pinned = by_name(skill for skill in settled if skill.trust != Trust.QUARANTINED)
    names = ActiveSkill.objects.filter(thread_id=run.thread_id).order_by("pk")
    active = {name: pinned[name] for name in names.values_list("name", flat=True) if name in pinned}
    return RunSkills(run.skill_set_id, pinned, active)
