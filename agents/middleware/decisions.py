"""Recording of people's decisions. All pages, APIs and programs call these functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser

from agents.middleware.inputs import edited_input_problem
from agents.models import ApprovalRequest
from agents.services.approvals.decisions import (
    DecisionRequest,
    InputCheck,
    check_answer,
    decide_approval,
)
from agents.spec import AgentSpec


def decide(request_id: str, answer: DecisionRequest, *, by: AbstractBaseUser) -> ApprovalRequest:
    """Record a decision, after checking an edited input against its tool.

    See `decide_approval`.
    """
    return decide_approval(request_id, answer, by=by, check_input=_check_of(request_id))


def decide_all(answers: Mapping[str, DecisionRequest], *, by: AbstractBaseUser) -> None:
    """Record several decisions. Errors of `decide` are raised before any is recorded.

    If another person decides one of the requests at the same moment, the decisions recorded before
    that one are kept.
    """
    for request_id, answer in answers.items():
        check_answer(request_id, answer, by=by, check_input=_check_of(request_id))
    for request_id, answer in answers.items():
        decide(request_id, answer, by=by)


def _check_of(request_id: str) -> InputCheck:
    def check(spec: AgentSpec, tool: str, edited: dict[str, Any]) -> str | None:
        request = ApprovalRequest.objects.select_related("run__thread").get(pk=request_id)
        before = request.input if isinstance(request.input, dict) else {}
        return edited_input_problem(spec, tool, edited, before, request.run)

    return check
