"""The agents that a person may start runs with."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import ApiView, person
from agents.api.pages import page_of
from agents.api.serializers.agents import AgentShape
from agents.api.serializers.strict import PageQuery, read_query
from agents.models import TokenScope
from agents.selectors.visible import agents_for


class Agents(ApiView):
    """`GET /agents`"""

    scopes: ClassVar = {"GET": TokenScope.READ}

    def get(self, request: Request) -> Response:
        query = read_query(PageQuery, request)
        return page_of(
            agents_for(person(request)),
            AgentShape().to_representation,
            by="slug",
            cursor=query.get("cursor"),
            limit=query["limit"],
        )
