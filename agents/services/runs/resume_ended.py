"""Continue an ended run as a new run of the same thread."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from agents.kernel.proposals import run_request_kinds
from agents.models import NEVER_STARTED, Run, Thread
from agents.services.errors import Conflict, NotAllowed
from agents.services.runs.start import RunRequest, create_run
from agents.services.runs.wake import lock_run
from agents.states import RunStatus, WaitReason

CONTINUE = "Continue from where you stopped."

_UNKNOWN = "it waits for a feature that is not installed any more: cancel it"
_WAITS: dict[str, str] = {
    WaitReason.APPROVAL: (
        "it waits for a decision: GET /api/v1/approvals?status=pending&run={run} lists what is "
        "asked, POST /api/v1/approvals/ID/decide answers"
    ),
    WaitReason.CHILDREN: "it continues when its subagents have ended",
}


@transaction.atomic
def resume_as_new_run(run_id: str, *, by: AbstractBaseUser, message: str = "") -> Run:
    """Create a run that continues one that failed, was cancelled or reached a limit.

    It uses the agent's present version and sees the thread up to that end. `message` is the new
    run's message; by default, to continue. Raises `NotAllowed` for other users than the owner, and
    `Conflict` for a run that has not ended, is completed, belongs to a subagent, is not the
    thread's last one, or whose message was blocked.
    """
    run = lock_run(run_id)
    if run.owner_id != by.pk:
        raise NotAllowed("Only its owner may resume a run.")
    # A new message has the thread locked: wait for it.
    thread = Thread.objects.select_for_update(no_key=True).get(pk=run.thread_id)
    _check_resumable(run)
    if Run.objects.filter(thread=thread, number__gt=run.number).exclude(NEVER_STARTED).exists():
        raise Conflict(
            "The thread has newer runs than this one. Send a new message to it instead.",
            code="thread_went_on",
        )
    request = RunRequest(
        agent=thread.agent.slug,
        message=message or CONTINUE,
        thread=thread.pk,
        resumed_from=run,
    )
    return create_run(request, owner=by).run


def _check_resumable(run: Run) -> None:
    if run.parent_id is not None:
        raise Conflict(
            "A subagent's run cannot be resumed. Resume the run that started it.",
            code="subagent",
        )
    if run.status == RunStatus.WAITING:
        kind = run_request_kinds().get(run.wait_reason)
        what = kind.how_to_resume if kind is not None else _WAITS.get(run.wait_reason, _UNKNOWN)
        what = what.format(run=run.pk)
        raise Conflict(f"The run has not ended: {what}.", code="waiting")
    if run.status == RunStatus.COMPLETED:
        raise Conflict("The run has been answered: send a new message.", code="completed")
    if not run.has_ended:
        raise Conflict("The run is in progress or queued, so it cannot be resumed.", code="active")
    if Run.objects.filter(NEVER_STARTED, pk=run.pk).exists():
        raise Conflict(
            "The message of this run was removed before the run started, or was added to the run "
            "before it. Send a new message.",
            code="never_started",
        )
    if run.message_refused:
        raise Conflict(
            "The message of this run was blocked before the model received it. Send another "
            "message.",
            code="message_blocked",
        )
