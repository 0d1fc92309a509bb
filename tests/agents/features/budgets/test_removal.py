"""Waiting runs when their budgets are removed."""

from __future__ import annotations

import pytest

from agents.features.budgets.removal import wake_waiting_runs
from agents.models import ApprovalRequest, Run
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict
from tests.agents.features.budgets.test_admin import asked
from tests.support.runs import event_types, make_agent, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_removal_lets_runs_continue_that_wait_for_a_budget() -> None:
    user = make_user()
    make_agent(user)
    request = asked(user)
    wake_waiting_runs()
    request.refresh_from_db()
    run = Run.objects.get(pk=request.run_id)
    assert (run.status, run.wait_reason, request.status) == ("queued", "", "cancelled")
    assert event_types(run)[-1] == "run.resumed"


def test_a_request_of_a_removed_feature_can_only_be_rejected() -> None:
    user = make_user()
    make_agent(user)
    request = asked(user)
    # Simulate a request of another feature.
    ApprovalRequest.objects.filter(pk=request.pk).update(kind="lunch")
    Run.objects.filter(pk=request.run_id).update(wait_reason="lunch")
    with pytest.raises(Conflict, match="is not installed"):
        decide_approval(request.pk, DecisionRequest("approve"), by=user)
    decide_approval(request.pk, DecisionRequest("reject"), by=user)
    assert Run.objects.get(pk=request.run_id).status == "queued"
