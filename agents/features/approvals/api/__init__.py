"""REST endpoints for approval requests, grants, and rehearsals of policies."""

from __future__ import annotations

from django.urls import path

from agents.features.approvals.api.approvals import Approvals, DecideApproval, OneApproval
from agents.features.approvals.api.grants import Grants, RehearsePolicy, RevokeGrant

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
