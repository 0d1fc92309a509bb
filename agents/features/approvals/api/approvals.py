"""Endpoints for approval requests and decisions."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.list_queries import created_between
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import PAGE_BYTES, ordered_page
from agents.doors.rest.serializers import read_body, read_query
from agents.features.approvals.serializers import (
    APPROVAL_ORDER,
    ApprovalListQuery,
    ApprovalShape,
    DecisionBody,
    with_approval_columns,
)
from agents.kernel.proposals import proposal_kind
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, TokenScope
from agents.review.json_text import size_of
from agents.selectors.visible import approvals_for, of_agent
from agents.services.approvals.decisions import DecisionRequest
from agents.services.approvals.rights import Rights
from agents.services.errors import NotFound


class Approvals(ApiView):
    """The endpoint `GET /approvals`: oldest first."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_approvals",
        "List approval requests",
        query=ApprovalListQuery,
        answer=Page(ApprovalShape),
    )
    def get(self, request: Request) -> Response:
        query = read_query(ApprovalListQuery, request)
        requests = approvals_for(person(request))
        if "status" in query:
            requests = requests.filter(status=query["status"])
        if "run" in query:
            requests = requests.filter(run=query["run"])
        if "kind" in query:
            requests = requests.filter(kind=query["kind"])
        if "agent" in query:
            requests = requests.filter(of_agent("run__agent_version__agent", query["agent"]))
        if "tool" in query:
            requests = requests.filter(tool=query["tool"])
        requests = with_approval_columns(requests.filter(**created_between(query)))
        return ordered_page(
            requests,
            ApprovalShape(context={"rights": Rights(person(request))}).to_representation,
            query,
            APPROVAL_ORDER,
            weight=_weight,
        )


def _weight(request: ApprovalRequest) -> int:
    kind = proposal_kind(request)
    inputs = sum(size_of(given, PAGE_BYTES) for given in (request.input, request.edited_input))
    return inputs + (kind.size(request) if kind is not None else 0)


class OneApproval(ApiView):
    """The endpoint `GET /approvals/{id}`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_approval", "Read an approval request", answer=ApprovalShape)
    def get(self, request: Request, approval_id: str) -> Response:
        return Response(show_approval(person(request), approval_id))


class DecideApproval(ApiView):
    """The endpoint `POST /approvals/{id}/decide`."""

    scopes: ClassVar = {"POST": TokenScope.APPROVE}

    @operation(
        "decide_approval",
        "Decide an approval request",
        body=DecisionBody,
        answer=ApprovalShape,
        errors=(409,),
        description="`digest` is the digest of the request. It identifies "
        "exactly the displayed content.",
    )
    def post(self, request: Request, approval_id: str) -> Response:
        user = person(request)
        body = read_body(DecisionBody, request)
        decide(approval_id, DecisionRequest(**body), by=user)
        return Response(show_approval(user, approval_id))


def show_approval(user: AbstractBaseUser, approval_id: str) -> dict[str, object]:
    """Return a request as visible to `user`. Raises `NotFound`."""
    found: ApprovalRequest | None = (
        with_approval_columns(approvals_for(user)).filter(pk=approval_id).first()
    )
    if found is None:
        raise NotFound(f"There is no request {approval_id!r} that you may see.")
    return ApprovalShape(found, context={"rights": Rights(user)}).data
