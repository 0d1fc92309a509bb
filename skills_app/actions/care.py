"""Clean-up of the disk: unpacked skills that no run needs."""

from __future__ import annotations

from agents.states import ENDED_RUNS
from skills_app.actions.sets import skills_in
from skills_app.library.store.prune import prune_store
from skills_app.library.store.store import set_key
from skills_app.models import RunSkillSet

DAY = 86_400.0
MIN_DAYS = 1
"""A run of another database that shares the store may have just started."""


def prune_unpacked_skills(days: int, *, apply: bool) -> list[str]:
    """Remove sets that no run has requested in `days` days; return paths. Raises OSError.

    Sets of runs that have not ended stay: a driver may have them mounted.
    """
    active = RunSkillSet.objects.exclude(run__status__in=ENDED_RUNS).order_by()
    sets = active.values_list("skill_set_id", flat=True).distinct()
    keep = {set_key(skills_in(set_id)) for set_id in sets}
    return prune_store(keep, older_than=max(days, MIN_DAYS) * DAY, apply=apply)
