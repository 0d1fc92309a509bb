"""REST endpoints for approval requests, grants, and rehearsals of policies."""

from __future__ import annotations

from django.urls import path

from agents.doors.rest.managed.coverage import RestObject
from agents.features.approvals.api.approvals import Approvals, DecideApproval, OneApproval
from agents.features.approvals.api.grants import Grants, RehearsePolicy, RevokeGrant
from agents.models import ApprovalGrant, ApprovalRequest

_REQUESTS = "owners of the runs, and approvers"

OBJECTS = [
    RestObject(
        model=ApprovalRequest,
        path="approvals",
        list=("list_approvals", _REQUESTS),
        read=("get_approval", _REQUESTS),
        further={"decide_approval": "people who may decide it"},
        actions={"approve_selected": "decide_approval", "reject_selected": "decide_approval"},
        scope="approve",
    ),
    RestObject(
        model=ApprovalGrant,
        path="grants",
        list=("list_grants", "people whom it concerns, and approvers"),
        further={"revoke_grant": "people who may revoke it"},
        actions={"revoke_selected": "revoke_grant"},
        scope="approve",
    ),
]

urlpatterns = [
    path("approvals", Approvals.as_view(), name="approvals"),
    path("approvals/<opaque_id:approval_id>", OneApproval.as_view(), name="approval"),
    path(
        "approvals/<opaque_id:approval_id>/decide", DecideApproval.as_view(), name="approval-decide"
    ),
    path("grants", Grants.as_view(), name="grants"),
    path("grants/<opaque_id:grant_id>/revoke", RevokeGrant.as_view(), name="grant-revoke"),
    path(
        "agents/<agent_name:agent_id>/policy/rehearse",
        RehearsePolicy.as_view(),
        name="policy-rehearse",
    ),
]
