"""The display of a request of any kind, pending or decided.

The caller checks that the person may see the request.
"""

from __future__ import annotations

from agents.kernel.proposals import proposal_kind, run_request_kind
from agents.models import ApprovalRequest
from agents.review import Review, call_review
from agents.review.call import with_preview
from agents.services.approvals.waiting_call import review_of
from agents.states import ApprovalStatus


def review_of_request(request: ApprovalRequest) -> Review:
    """Return the display of a request. A pending call is compared with the present files.

    A decided call is not compared: the files have changed since, and the diff would show a change
    that was never requested.
    """
    if (kind := proposal_kind(request) or run_request_kind(request)) is not None:
        return kind.review(request)
    pending = request.status == ApprovalStatus.PENDING
    review = review_of(request) if pending else call_review(request.tool, request.input)
    if request.preview is None:
        return review
    return with_preview(review, request.tool, request.preview)
