"""The door that people's decisions come through, wherever they are made."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.middleware.inputs import edited_input_problem
from agents.models import ApprovalRequest
from agents.services.approvals import DecisionRequest, decide_approval


def decide(request_id: str, answer: DecisionRequest, *, by: AbstractBaseUser) -> ApprovalRequest:
    """`decide_approval`, with an edited input checked against its tool before it is recorded."""
    return decide_approval(request_id, answer, by=by, check_input=edited_input_problem)
