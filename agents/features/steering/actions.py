"""Stop a run for the next waiting message of its thread."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from agents.features.steering.models import SteeringRequest
from agents.models import Run, Thread
from agents.services.audit import record
from agents.services.errors import Conflict, NotAllowed
from agents.services.runs.control import cancel_run, is_driven, may_cancel
from agents.services.runs.wake import lock_run
from agents.states import ACTIVE_RUNS, RunStatus

SOURCES = ("web", "draft")
"""`Run.source` of the runs that the middleware watches, with a query for each turn and call."""
REASON = "another message was sent instead"


@transaction.atomic
def send_now(waiting: Run, *, by: AbstractBaseUser) -> None:
    """Let the run before `waiting` end, so that `waiting` starts.

    A run that a worker executes ends after its running call, if people started it on the web pages.
    Any other run ends as if it was cancelled.

    Raises:
        NotAllowed: `by` may not cancel the run.
        Conflict: `waiting` is not the thread's next message, or no run is at work.
    """
    siblings = Run.objects.filter(thread=waiting.thread_id, parent=None)
    active = siblings.filter(status__in=ACTIVE_RUNS).values_list("pk", flat=True).first()
    # Lock the run before its thread, as everywhere.
    run = lock_run(active) if active is not None else None
    Thread.objects.select_for_update(no_key=True).get(pk=waiting.thread_id)
    following = siblings.filter(status=RunStatus.PENDING).order_by("number").first()
    if run is None or run.has_ended or following is None or following.pk != waiting.pk:
        raise Conflict(
            "This is not the next message any more, or it has already been sent.",
            code="not_waiting",
        )
    if not may_cancel(by, run):
        raise NotAllowed("Only its owner may stop a run.")
    name = by.get_username()
    is_new = True
    if run.source in SOURCES and is_driven(run):
        _, is_new = SteeringRequest.objects.get_or_create(run=run, defaults={"by": name})
    else:
        cancel_run(run.pk, by=name, reason=REASON)
    if is_new:
        record("run.cancelled", run, name=run.pk, by=by, note=REASON)


def requested_by(run_id: str) -> str | None:
    """Return the name of the user who wants the run to stop, None without a request."""
    rows = SteeringRequest.objects.filter(run=run_id)
    return rows.values_list("by", flat=True).first()
