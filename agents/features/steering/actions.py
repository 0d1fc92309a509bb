"""Send the next waiting message of a thread to the run in progress, or stop the run for it."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet

from agents.features.steering.models import SteeringRequest
from agents.models import Run, Thread
from agents.services.audit import record
from agents.services.errors import Conflict, NotAllowed
from agents.services.runs.control import cancel_run, is_driven, may_cancel
from agents.services.runs.wake import lock_run
from agents.states import ACTIVE_RUNS, RunStatus

SOURCES = ("web", "draft")
"""`Run.source` of the runs that stop between two calls, with a query for each call."""
WRITTEN_BY_OWNER = frozenset({"api", "chat", "cli", "draft", "python", "web"})
"""`Run.source` of the messages that can join. Other programs write the others."""
REASON = "another message was sent instead"


@transaction.atomic
def send_now(waiting: Run, *, by: AbstractBaseUser) -> Run | None:
    """Let the message of `waiting` join the run before it, or let that run end for it.

    The message joins before the next model call. If `can_join` is false, the run ends after its
    running call, if people started it on the web pages and a worker executes it. Otherwise it ends
    immediately.

    Returns:
        The run that the message joins, or None if the run ends.

    Raises:
        NotAllowed: `by` may not cancel the run.
        Conflict: `waiting` is not the thread's next message, or no run is at work.
    """
    siblings = _runs_of(waiting.thread_id)
    active = siblings.filter(status__in=ACTIVE_RUNS).values_list("pk", flat=True).first()
    # Lock the run before its thread, as everywhere.
    run = lock_run(active) if active is not None else None
    Thread.objects.select_for_update(no_key=True).get(pk=waiting.thread_id)
    request, sent = _request_and_sent(active)
    pending = siblings.filter(status=RunStatus.PENDING).order_by("number")
    found = pending.filter(pk=waiting.pk).first()
    following = pending.filter(number__gt=sent).first()
    is_next = found is not None and (found.number <= sent or found == following)
    if run is None or run.has_ended or found is None or not is_next:
        raise Conflict(
            "This is not the next message any more, or it has already been sent.",
            code="not_waiting",
        )
    if not may_cancel(by, run):
        raise NotAllowed("Only its owner may stop a run.")
    if found.number <= sent:
        return run
    name = by.get_username()
    if can_join(found, run) and (request is None or request.until is not None):
        SteeringRequest.objects.update_or_create(
            run=run, defaults={"by": name, "until": found.number}
        )
        record("run.message_sent", run, name=run.pk, by=by, note=f"the message of {found.pk}")
        return run
    if sent:
        raise Conflict(
            "The message before this one has not reached the agent yet. Send this one afterwards.",
            code="not_waiting",
        )
    is_new = True
    if run.source in SOURCES and is_driven(run):
        _, is_new = SteeringRequest.objects.get_or_create(run=run, defaults={"by": name})
    else:
        cancel_run(run.pk, by=name, reason=REASON)
    if is_new:
        record("run.cancelled", run, name=run.pk, by=by, note=REASON)
    return None


def next_to_send(thread_id: str) -> Run | None:
    """Return the waiting run of the thread that `send_now` can send next, or None."""
    siblings = _runs_of(thread_id)
    active = siblings.filter(status__in=ACTIVE_RUNS).values_list("pk", flat=True).first()
    _, sent = _request_and_sent(active)
    pending = siblings.filter(status=RunStatus.PENDING, number__gt=sent)
    return pending.order_by("number").first()


def _runs_of(thread_id: str) -> QuerySet[Run]:
    return Run.objects.filter(thread=thread_id, parent=None)


def _request_and_sent(active: str | None) -> tuple[SteeringRequest | None, int]:
    """Return the request about the active run, and the number of the last run that was sent."""
    request = SteeringRequest.objects.filter(run=active).first()
    return request, (request.until if request is not None else None) or 0


def can_join(waiting: Run, run: Run) -> bool:
    """Return whether the message of `waiting` can become part of `run`.

    The owner must have written it, for the definition and the answer that `run` has.
    """
    return (
        waiting.owner_id == run.owner_id
        and waiting.trigger is None
        and waiting.source in WRITTEN_BY_OWNER
        and waiting.agent_version_id == run.agent_version_id
        and waiting.subagent_spec == run.subagent_spec
        and waiting.output_schema in (None, run.output_schema)
        and waiting.resumed_from_id is None
    )


def request_for(run_id: str) -> SteeringRequest | None:
    """Return the request about a run, None if there is none. Takes one indexed query."""
    return SteeringRequest.objects.filter(run=run_id).first()


def stopped_by(run_id: str) -> str | None:
    """Return the name of the user who wants the run to stop, None without such a request."""
    rows = SteeringRequest.objects.filter(run=run_id, until=None)
    return rows.values_list("by", flat=True).first()


def messages_to_join(run: Run, until: int) -> Sequence[tuple[str, str]]:
    """Return the id and the text of each message that joins `run` now, in their order.

    A message that cannot join also keeps those after it waiting.
    """
    waiting = Run.objects.filter(
        thread=run.thread_id, parent=None, status=RunStatus.PENDING, number__lte=until
    )
    found = []
    for row in waiting.order_by("number"):
        if not can_join(row, run):
            break
        found.append((row.pk, row.messages.get(turn=0, position=0).text))
    return found


def forget(run_id: str, until: int) -> None:
    """Delete the request, unless it is about later messages too."""
    SteeringRequest.objects.filter(run=run_id, until__lte=until).delete()


def stop_instead(run_id: str, by: str) -> None:
    """End the run in progress, so that the waiting message starts its own run."""
    cancel_run(run_id, by=by, reason=REASON)
