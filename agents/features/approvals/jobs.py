"""Periodic work: requests without a decision expire."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.events.append import EventDraft, append_events
from agents.events.catalogue.approvals import ApprovalExpired
from agents.kernel.features import Job
from agents.kernel.proposals import beside_requests, is_beside
from agents.models import ApprovalRequest
from agents.services.approvals.decisions import reject_call, wake_if_decided
from agents.services.audit import record
from agents.services.runs.wake import lock_run
from agents.states import APPROVAL_TRANSITIONS, ApprovalStatus, RunStatus, check_transition


@transaction.atomic
def expire_approval() -> bool:
    """End the request that expired first, reject its call, and wake its run.

    The run stays parked while it has other pending requests. Return whether a request was ended:
    False if none has expired, or another process was faster. Any process may call this at any time.
    """
    due = ApprovalRequest.objects.filter(
        Q(run__status=RunStatus.WAITING) | beside_requests(),
        status=ApprovalStatus.PENDING,
        expires_at__lte=timezone.now(),
    ).order_by("expires_at")
    found = due.values_list("pk", "run_id").first()
    if found is None:
        return False
    request_id, run_id = found
    run = lock_run(run_id)
    request = ApprovalRequest.objects.select_for_update().get(pk=request_id)
    waits = run.status == RunStatus.WAITING or is_beside(request)
    if request.status != ApprovalStatus.PENDING or not waits:
        return False  # another process was faster
    check_transition(APPROVAL_TRANSITIONS, request.status, ApprovalStatus.EXPIRED)
    request.status = ApprovalStatus.EXPIRED
    request.save(update_fields=["status"])
    drafts: list[EventDraft] = [ApprovalExpired(approval_id=request.id)]
    call = request.tool_call
    if call is not None:
        text = "The approval request expired. The call was not made."
        drafts += reject_call(call, text, code="expired", reason=text)
    if not run.has_ended:
        append_events(run.id, drafts)
    record("approval.expired", request, name=request.tool)
    if not is_beside(request):
        wake_if_decided(run)
    return True


JOBS = [Job("requests that have expired", expire_approval, workers_only=False)]
