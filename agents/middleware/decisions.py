"""The door that people's decisions come through, wherever they are made."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser

from agents.middleware.inputs import edited_input_problem
from agents.models import ApprovalRequest
from agents.services.approvals import DecisionRequest, decide_approval
from agents.spec import AgentSpec


def decide(request_id: str, answer: DecisionRequest, *, by: AbstractBaseUser) -> ApprovalRequest:
    """`decide_approval`, with an edited input checked against its tool before it is recorded."""

    def check(spec: AgentSpec, tool: str, edited: dict[str, Any]) -> str | None:
        run = None
        if spec.toolkit:
            asked = ApprovalRequest.objects.select_related("run__thread").get(pk=request_id)
            run = asked.run
        return edited_input_problem(spec, tool, edited, run)

    return decide_approval(request_id, answer, by=by, check_input=check)
