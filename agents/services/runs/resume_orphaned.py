"""Taking over a run with its subagents from a process that is gone."""

from __future__ import annotations

from django.db import transaction

from agents.models import Run, RunClock
from agents.services.errors import Conflict
from agents.services.runs.control import is_driven, locked_descendants, resume_run
from agents.services.runs.toolkits import must_have_tools
from agents.services.runs.wake import enqueue_run, lock_run
from agents.states import RunStatus, WaitReason


@transaction.atomic
def resume_orphaned_family(run_id: str, *, executor: str) -> Run:
    """Assign a run and its subagents to `executor`, and queue those that can continue.

    A run that waits for subagents still waits; for any other this is `resume_run`, with its errors.
    Raises `Conflict` with the code `driven` if one of the subagents is being driven.
    """
    run = lock_run(run_id)
    must_have_tools(run)
    waits = (run.status, run.wait_reason) == (RunStatus.WAITING, WaitReason.CHILDREN)
    if run.parent_id is not None or not waits:
        return resume_run(run_id, executor=executor)
    members = [member for member in locked_descendants(run) if not member.has_ended]
    for member in members:
        if member.status == RunStatus.RUNNING and is_driven(member):
            raise Conflict(f"Its subagent {member.pk} is being driven.", code="driven")
    for member in (run, *members):
        member.executor = executor
        member.save(update_fields=["executor"])
        if member.status in (RunStatus.QUEUED, RunStatus.RUNNING):
            RunClock.objects.filter(run=member).update(lost_drivers=0)
            enqueue_run(member)
    return run
