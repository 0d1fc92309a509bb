"""The field `databases` of agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q, QuerySet

from agents.demo.task import DATABASE_NAME, database_path
from agents.features.databases.actions import (
    CONFIGURE_DATABASE,
    check_assignable,
    may_configure,
    save_own_connection,
    seal_url,
)
from agents.features.databases.drivers.address import from_here
from agents.features.databases.models import DatabaseConnection
from agents.features.databases.queries import shared_names
from agents.kernel.relations import AgentRelation
from agents.secret_text import SecretText
from agents.selectors.visible import Person

_LIMITS = {"query_timeout": "statement_seconds", "row_limit": "max_rows"}
"""The fields for limits of a program."""


class Databases(AgentRelation):
    name = "databases"
    title = "Databases"
    help_text = (
        "The databases that it can query. If you remove one, current runs lose it immediately."
    )
    permission = CONFIGURE_DATABASE

    def choices(self, agent: Any) -> QuerySet[DatabaseConnection]:
        return DatabaseConnection.objects.filter(Q(agent=None) | Q(agent=agent.pk))

    def named(self, agent: Any) -> Mapping[str, DatabaseConnection]:
        """Return the agent's connections and shared ones, by name. The agent's take precedence."""
        shared = {row.name: row for row in DatabaseConnection.objects.filter(agent=None)}
        return {**shared, **{row.name: row for row in self.rows(agent)}}

    def copied(self, agent: Any) -> list[DatabaseConnection]:
        return [row for row in self.rows(agent) if not row.is_private]

    def check(self, agent: Any, rows: Sequence[DatabaseConnection]) -> None:
        check_assignable(agent, rows)

    def fields(self, rows: Sequence[DatabaseConnection]) -> dict[str, Any]:
        connections = sorted(rows, key=lambda connection: connection.name)
        dialects = tuple(connection.dialect for connection in connections)
        found = {
            "databases": tuple(connection.name for connection in connections),
            "database_dialects": dialects if any(dialects) else (),
            "writable_databases": tuple(
                connection.name for connection in connections if connection.allow_writes
            ),
        }
        return {name: value for name, value in found.items() if value}

    def offered(self, person: Person) -> list[str]:
        return shared_names() if may_configure(person) else []

    def demo_rows(self) -> list[DatabaseConnection]:
        """Return the connection to the file that comes with Vel, with its present path."""
        url = seal_url(f"sqlite:///{database_path()}")
        row = DatabaseConnection.objects.filter(agent=None, name=DATABASE_NAME).first()
        if row is None:
            row = DatabaseConnection(name=DATABASE_NAME, description="The weather of Seattle.")
        elif row.url.same_as(url):
            return [row]
        row.url, row.dialect = url, "sqlite"
        row.save()
        return [row]

    def seal(self, name: str, value: str) -> SecretText:
        return seal_url(from_here(value))

    def own_row(
        self,
        agent: Any,
        name: str,
        sealed: SecretText,
        *,
        writable: bool = False,
        limits: Mapping[str, Any] | None = None,
    ) -> DatabaseConnection:
        own = {_LIMITS[limit]: value for limit, value in (limits or {}).items()}
        return save_own_connection(agent, name, sealed, allow_writes=writable, **own)


RELATIONS = (Databases(),)
