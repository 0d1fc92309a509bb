"""Find the runs that wait for a person after their installation was restored from a backup."""

from __future__ import annotations

from django.db.models import Q

from agents.models import RESTORED, Run
from agents.states import RunStatus, WaitReason

_WOULD_CONTINUE = (RunStatus.QUEUED, RunStatus.RUNNING)
HELD = Q(executor=RESTORED) & (
    Q(status__in=_WOULD_CONTINUE) | Q(status=RunStatus.WAITING, wait_reason=WaitReason.CHILDREN)
)
"""The runs for which `is_held` is true."""


def is_held(run: Run) -> bool:
    """Return whether a person must resume or cancel the run, because it came from a backup."""
    waits_for_subagents = (run.status, run.wait_reason) == (
        RunStatus.WAITING,
        WaitReason.CHILDREN,
    )
    return run.executor == RESTORED and (run.status in _WOULD_CONTINUE or waits_for_subagents)


def why_held(run: Run) -> str:
    """Return a message for people who look at a held run, otherwise ""."""
    if not is_held(run):
        return ""
    return (
        "This run is held for review: Vel was restored from a backup, and the work of the run "
        "after it is unknown. Its owner can cancel it, and an administrator can resume it."
    )
