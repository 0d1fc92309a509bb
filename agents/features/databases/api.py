"""The databases that a person's agents may query."""

from __future__ import annotations

from typing import Any, ClassVar

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import ordered_page
from agents.doors.rest.serializers import read_query
from agents.features.databases.models import DatabaseConnection
from agents.features.databases.queries import databases_for, may_see_all_databases
from agents.features.databases.serializers import (
    DATABASE_ORDER,
    DatabaseListQuery,
    DatabaseShape,
    OperatorsDatabaseShape,
)
from agents.models import TokenScope
from agents.selectors.visible import agents_for


class Databases(ApiView):
    """`GET /databases`"""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_databases",
        "List the databases of agents that you may use",
        query=DatabaseListQuery,
        answer=Page(OperatorsDatabaseShape),
    )
    def get(self, request: Request) -> Response:
        query = read_query(DatabaseListQuery, request)
        user = person(request)
        is_operator = may_see_all_databases(user)
        usable = {"agents": set(agents_for(user).values_list("pk", flat=True))}

        def show(row: DatabaseConnection) -> dict[str, Any]:
            if is_operator:
                return OperatorsDatabaseShape(row, context=usable).data
            return {**DatabaseShape(row, context=usable).data, "limits": None}

        # Without the URL, so that it cannot leak.
        rows = databases_for(user).defer("url").prefetch_related("agents")
        return ordered_page(rows, show, query, DATABASE_ORDER)


urlpatterns = [path("databases", Databases.as_view(), name="databases")]
