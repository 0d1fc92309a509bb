"""Endpoints for grants (list and revoke) and for rehearsing a policy on past calls."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.list_queries import created_between
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import ordered_page
from agents.doors.rest.serializers import StrictSerializer, read_body, read_query
from agents.features.approvals.serializers import (
    GRANT_ORDER,
    GrantListQuery,
    GrantShape,
    RehearsalBody,
    RehearsalShape,
    with_grant_columns,
)
from agents.middleware.rehearsal import rehearse, with_policy
from agents.models import Agent, TokenScope
from agents.selectors.visible import agent_named, grants_for, of_agent, runs_for
from agents.services.approvals.grants import good_grants, revoke_grant
from agents.services.errors import NotAllowed, NotFound


class Grants(ApiView):
    """The endpoint `GET /grants`: newest first."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("list_grants", "List grants", query=GrantListQuery, answer=Page(GrantShape))
    def get(self, request: Request) -> Response:
        query = read_query(GrantListQuery, request)
        grants = grants_for(person(request))
        if query.get("good"):
            grants = good_grants(grants)
        if "agent" in query:
            grants = grants.filter(of_agent("agent", query["agent"]))
        grants = with_grant_columns(grants.filter(**created_between(query)))
        return ordered_page(grants, GrantShape().to_representation, query, GRANT_ORDER)


class RevokeGrant(ApiView):
    """The endpoint `POST /grants/{id}/revoke`."""

    scopes: ClassVar = {"POST": TokenScope.APPROVE}

    @operation(
        "revoke_grant", "Revoke a grant", body=StrictSerializer, answer=GrantShape, errors=(409,)
    )
    def post(self, request: Request, grant_id: str) -> Response:
        user = person(request)
        read_body(StrictSerializer, request)
        revoke_grant(grant_id, by=user)
        return Response(GrantShape(with_grant_columns(grants_for(user)).get(pk=grant_id)).data)


class RehearsePolicy(ApiView):
    """The endpoint `POST /agents/{id}/policy/rehearse`, for people who can change agents."""

    scopes: ClassVar = {"POST": TokenScope.READ}

    @operation(
        "rehearse_policy", "Test a policy on past calls", body=RehearsalBody, answer=RehearsalShape
    )
    def post(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        if not request.user.has_perm("agents.change_agent"):
            raise NotAllowed("Only users who can change agents can test a policy on past calls.")
        body = read_body(RehearsalBody, request)
        days = body.pop("days")
        agent = agent_named(Agent.objects.all(), agent_id)
        if agent is None:
            raise NotFound(f"There is no agent {agent_id!r}.")
        found = rehearse(agent, with_policy(agent, body), days=days, readable=runs_for(user))
        return Response(RehearsalShape(found).data)
