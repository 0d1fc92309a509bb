"""A request as a person reads it, whatever its kind and whether or not it still waits.

Whoever calls has found the request among those that the person may see.
"""

from __future__ import annotations

from agents.kernel.proposals import proposal_kind, run_request_kind
from agents.models import ApprovalRequest
from agents.review import Review, call_review
from agents.review.call import with_preview
from agents.services.approvals.waiting_call import review_of
from agents.states import ApprovalStatus


def review_of_request(request: ApprovalRequest) -> Review:
    """What is asked. A pending call stands beside the files that it would meet now.

    One that was decided does not: the files have changed since, and a diff with them would show
    what nobody was asked about.
    """
    if (kind := proposal_kind(request) or run_request_kind(request)) is not None:
        return kind.review(request)
    pending = request.status == ApprovalStatus.PENDING
    review = review_of(request) if pending else call_review(request.tool, request.input)
    if request.preview is None:
        return review
    return with_preview(review, request.tool, request.preview)
