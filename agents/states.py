"""Statuses of runs, tool calls and approvals, and the only ways from one to another.

The tables are the law: every change of a status goes through `check_transition`, and a test walks
all pairs.
"""

from __future__ import annotations

from django.db import models


class RunStatus(models.TextChoices):
    PENDING = "pending", "pending"  # waits for the thread's active run to end
    QUEUED = "queued", "queued"  # a worker should pick it up
    RUNNING = "running", "running"  # a driver holds its lease, or did until it died
    WAITING = "waiting", "waiting"  # parked: see `Run.wait_reason`
    COMPLETED = "completed", "completed"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


class WaitReason(models.TextChoices):
    NONE = "", ""
    APPROVAL = "approval", "approval"
    CHILDREN = "children", "children"


class ToolCallStatus(models.TextChoices):
    PENDING = "pending", "pending"  # the model asked for it
    WAITING = "waiting", "waiting for approval"
    APPROVED = "approved", "approved"  # a person allowed it; it has not begun
    STARTED = "started", "started"
    SUCCEEDED = "succeeded", "succeeded"
    FAILED = "failed", "failed"  # the tool said no, raised, or ran out of time
    INVALID = "invalid", "invalid"  # unknown tool, or an input that does not fit: never started
    REJECTED = "rejected", "rejected"  # a person said no
    ANSWERED = "answered", "answered"  # a person gave the result instead
    DENIED = "denied", "denied"  # the policy said no
    CANCELLED = "cancelled", "cancelled"  # the run was cancelled
    INTERRUPTED = "interrupted", "interrupted"  # its worker died: outcome unknown


class ApprovalStatus(models.TextChoices):
    PENDING = "pending", "pending"
    DECIDED = "decided", "decided"
    EXPIRED = "expired", "expired"
    CANCELLED = "cancelled", "cancelled"  # its run ended
    SUPERSEDED = "superseded", "superseded"  # what it showed has changed; asked anew


class Decision(models.TextChoices):
    APPROVE = "approve", "approve"
    EDIT = "edit", "approve with changes"
    REJECT = "reject", "reject"
    RESPOND = "respond", "answer in its place"


R, T, A = RunStatus, ToolCallStatus, ApprovalStatus

RUN_TRANSITIONS: dict[str, frozenset[str]] = {
    R.PENDING: frozenset({R.QUEUED, R.CANCELLED}),
    R.QUEUED: frozenset({R.RUNNING, R.FAILED, R.CANCELLED}),
    R.RUNNING: frozenset({R.QUEUED, R.WAITING, R.COMPLETED, R.FAILED, R.CANCELLED}),
    R.WAITING: frozenset({R.QUEUED, R.FAILED, R.CANCELLED}),
    R.COMPLETED: frozenset(),
    # A person may let a failed run go on; a cancelled one stays cancelled.
    R.FAILED: frozenset({R.QUEUED}),
    R.CANCELLED: frozenset(),
}

TOOL_CALL_TRANSITIONS: dict[str, frozenset[str]] = {
    T.PENDING: frozenset({T.WAITING, T.STARTED, T.INVALID, T.DENIED, T.CANCELLED}),
    # Succeeded: a proposal, whose change the decision itself makes.
    T.WAITING: frozenset({T.APPROVED, T.SUCCEEDED, T.REJECTED, T.ANSWERED, T.INVALID, T.CANCELLED}),
    # Back to waiting: the workspace changed since the approval, so it is shown anew.
    T.APPROVED: frozenset({T.STARTED, T.WAITING, T.INVALID, T.DENIED, T.CANCELLED}),
    T.STARTED: frozenset({T.SUCCEEDED, T.FAILED, T.CANCELLED, T.INTERRUPTED}),
    **{
        final: frozenset()
        for final in (
            T.SUCCEEDED,
            T.FAILED,
            T.INVALID,
            T.REJECTED,
            T.ANSWERED,
            T.DENIED,
            T.CANCELLED,
            T.INTERRUPTED,
        )
    },
}

APPROVAL_TRANSITIONS: dict[str, frozenset[str]] = {
    A.PENDING: frozenset({A.DECIDED, A.EXPIRED, A.CANCELLED, A.SUPERSEDED}),
    A.DECIDED: frozenset({A.SUPERSEDED, A.CANCELLED}),
    A.EXPIRED: frozenset(),
    A.CANCELLED: frozenset(),
    A.SUPERSEDED: frozenset(),
}

ENDED_RUNS = frozenset(status for status in (R.COMPLETED, R.FAILED, R.CANCELLED))
ACTIVE_RUNS = frozenset({R.QUEUED, R.RUNNING, R.WAITING})
"""A thread has at most one root run in these statuses."""
FINISHED_CALLS = frozenset(
    status for status, following in TOOL_CALL_TRANSITIONS.items() if not following
)
OPEN_CALLS = frozenset(TOOL_CALL_TRANSITIONS) - FINISHED_CALLS


class IllegalTransition(Exception):
    """A status cannot follow another. The message names both and what could have followed."""


def check_transition(table: dict[str, frozenset[str]], before: str, after: str) -> None:
    """Raise `IllegalTransition` unless `table` leads from `before` to `after`."""
    if after not in table[before]:
        allowed = ", ".join(sorted(table[before])) or "nothing: it has ended"
        raise IllegalTransition(f"{before} cannot become {after}; it may become {allowed}.")
