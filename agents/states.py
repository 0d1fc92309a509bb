"""Statuses of runs, tool calls and approvals, with their transitions.

Every change of a status goes through `check_transition`. A test covers all pairs.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class RunStatus(models.TextChoices):
    PENDING = "pending", _("pending")  # waits for the thread's active run to end
    QUEUED = "queued", _("queued")  # a worker should claim it
    RUNNING = "running", _("running")  # a driver holds its lease, or held it until it died
    WAITING = "waiting", _("waiting")  # parked: see `Run.wait_reason`
    COMPLETED = "completed", _("completed")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class WaitReason(models.TextChoices):
    NONE = "", ""
    APPROVAL = "approval", _("approval")
    CHILDREN = "children", _("children")


class ToolCallStatus(models.TextChoices):
    PENDING = "pending", _("pending")  # requested by the model
    WAITING = "waiting", _("waiting for approval")
    APPROVED = "approved", _("approved")  # a person allowed it; not started yet
    STARTED = "started", _("started")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")  # the tool refused, raised an error, or timed out
    INVALID = "invalid", _("invalid")  # unknown tool or invalid input: never started
    REJECTED = "rejected", _("rejected")  # by a person
    ANSWERED = "answered", _("answered")  # a person gave the result instead
    DENIED = "denied", _("denied")  # by the policy
    CANCELLED = "cancelled", _("cancelled")  # the run was cancelled
    INTERRUPTED = "interrupted", _("interrupted")  # its worker died: outcome unknown


class ApprovalStatus(models.TextChoices):
    PENDING = "pending", _("pending")
    DECIDED = "decided", _("decided")
    EXPIRED = "expired", _("expired")
    CANCELLED = "cancelled", _("cancelled")  # its run ended
    SUPERSEDED = "superseded", _("superseded")  # replaced: the content changed


class Decision(models.TextChoices):
    APPROVE = "approve", _("approve")
    EDIT = "edit", _("approve with changes")
    REJECT = "reject", _("reject")
    RESPOND = "respond", _("answer in its place")


R, T, A = RunStatus, ToolCallStatus, ApprovalStatus

RUN_TRANSITIONS: dict[str, frozenset[str]] = {
    R.PENDING: frozenset({R.QUEUED, R.CANCELLED}),
    R.QUEUED: frozenset({R.RUNNING, R.FAILED, R.CANCELLED}),
    R.RUNNING: frozenset({R.QUEUED, R.WAITING, R.COMPLETED, R.FAILED, R.CANCELLED}),
    R.WAITING: frozenset({R.QUEUED, R.FAILED, R.CANCELLED}),
    R.COMPLETED: frozenset(),
    # People can resume a failed run, but not a cancelled one.
    R.FAILED: frozenset({R.QUEUED}),
    R.CANCELLED: frozenset(),
}

TOOL_CALL_TRANSITIONS: dict[str, frozenset[str]] = {
    T.PENDING: frozenset({T.WAITING, T.STARTED, T.INVALID, T.DENIED, T.CANCELLED}),
    # Succeeded: a proposal, which the decision itself applies.
    T.WAITING: frozenset({T.APPROVED, T.SUCCEEDED, T.REJECTED, T.ANSWERED, T.INVALID, T.CANCELLED}),
    # Waiting: the workspace has changed since the approval, so a new request is needed.
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
    """The transition is not allowed. The message contains both statuses and the allowed ones."""


def check_transition(table: dict[str, frozenset[str]], before: str, after: str) -> None:
    """Raise `IllegalTransition` unless `table` leads from `before` to `after`."""
    if after not in table[before]:
        allowed = ", ".join(sorted(table[before])) or "nothing: it has ended"
        raise IllegalTransition(f"{before} cannot become {after}; it may become {allowed}.")
