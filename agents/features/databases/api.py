"""The databases that a person's agents may query, and their definitions for operators."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.managed.fields import Computed, NameField, NamesField, moment_field
from agents.doors.rest.managed.objects import Action, Managed, Own
from agents.doors.rest.managed.views import endpoints
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import ordered_page
from agents.doors.rest.serializers import Text, read_query
from agents.features.databases.actions import try_connection
from agents.features.databases.admin import ConnectionForm, DatabaseConnectionAdmin
from agents.features.databases.models import DatabaseConnection
from agents.features.databases.queries import (
    databases_for,
    may_see_all_databases,
    shown_address,
)
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


def _url(**options: Any) -> Text:
    return Text(
        max_length=2_000,
        help_text=str(ConnectionForm.base_fields["new_url"].help_text),
        **options,
    )


def _test(row: DatabaseConnection, by: AbstractBaseUser) -> None:
    try_connection(row, by=by)


DATABASES = Managed(
    model=DatabaseConnection,
    admin=DatabaseConnectionAdmin,
    name="database",
    plural="databases",
    rows="databases",
    what=(
        "A database that agents can query. `url` is stored encrypted and never shown; `address` is "
        "the URL without the password."
    ),
    own={"url": Own(body=_url, form="new_url")},
    shown={
        "address": Computed(shown_address),
        "dialect": serializers.CharField(allow_blank=True),
        "agents": NamesField(help_text="The slugs of the agents that have it."),
        "agent": NameField(
            allow_null=True, help_text="The agent of a command line, which alone can have it."
        ),
        "owner": NameField(allow_null=True),
        "created_by": NameField(allow_null=True),
        "created_at": moment_field(),
        "updated_at": moment_field(),
    },
    prefetch=lambda: ("agents",),
    who={
        "list": "users of its agents; all: `vel_databases.view_databaseconnection` or "
        "`vel_databases.configure_database`",
        **{
            verb: f"staff with `vel_databases.{word}_databaseconnection` and "
            "`vel_databases.configure_database`"
            for verb, word in (("create", "add"), ("change", "change"), ("delete", "delete"))
        },
    },
    actions=(
        Action(
            name="test",
            summary="Run one statement that reads, to test a database",
            call=_test,
            admin="test_selected",
        ),
    ),
)

OBJECTS = [DATABASES]
urlpatterns = endpoints(DATABASES, rows=Databases)
