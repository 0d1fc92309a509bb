"""The databases that a run may query now, and the connections that a person may see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Q, QuerySet
from django.views.decorators.debug import sensitive_variables

from agents.features.databases.drivers.address import AddressRefused, address_of, checked_url
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.models import DatabaseConnection
from agents.secret_text import SecretUnreadable
from agents.selectors.visible import Person, agents_for
from agents.services.agent_definitions.rights import has_permission

CONFIGURE_DATABASE = "vel_databases.configure_database"
VIEW_DATABASE = "vel_databases.view_databaseconnection"


class DatabaseUnavailable(LookupError):
    """A database of the version is unavailable to the run. The message is for the model."""


class RunDatabases(dict[str, DatabaseTarget]):
    """Targets by name. Access to an unavailable one raises `DatabaseUnavailable`."""

    problems: dict[str, str]
    """The reason for each unavailable database."""

    def __missing__(self, name: str) -> DatabaseTarget:
        raise DatabaseUnavailable(
            self.problems.get(name, f"There is no database {name!r}. {self._others()}")
        )

    def _others(self) -> str:
        return f"There are: {', '.join(self)}." if self else "There are none."


def connections_of_run(
    agent_id: str, owner_id: int, names: Sequence[str]
) -> list[DatabaseConnection]:
    """Return the connections in `names` that the agent has now.

    A connection of a command line serves its own agent and only runs of its owner.
    """
    shared = Q(agent=None, agents=agent_id)
    own = Q(agent=agent_id, owner=owner_id)
    rows = DatabaseConnection.objects.filter(shared | own, name__in=names).distinct()
    # A private connection comes last, so it replaces a shared one with its name.
    return sorted(rows, key=lambda row: row.is_private)


def targets_of(rows: Iterable[DatabaseConnection], names: Sequence[str]) -> RunDatabases:
    """Return the targets of `names`, decrypted and checked again. It may block on file access.

    Raises `DatabaseUnavailable` if all of them are unavailable. The result may be incomplete.
    """
    found = {row.name: row for row in rows}
    targets = RunDatabases()
    targets.problems = {}
    for name in names:
        if name not in found:
            targets.problems[name] = (
                f"The database {name} was removed from this agent or deleted: continue without it."
            )
            continue
        try:
            targets[name] = target_of(found[name])
        except (SecretUnreadable, AddressRefused) as error:
            targets.problems[name] = (
                f"The database {name} cannot be used. Only an operator can fix this. {error}"
            )
    if names and not targets:
        raise DatabaseUnavailable(" ".join(targets.problems.values()))
    return targets


@sensitive_variables()
def target_of(row: DatabaseConnection) -> DatabaseTarget:
    """Return the target of a connection. Raises `SecretUnreadable` and `AddressRefused`."""
    return DatabaseTarget(
        name=row.name,
        url=checked_url(row.url.reveal()),
        statement_seconds=row.statement_seconds,
        max_rows=row.max_rows,
        max_bytes=row.max_bytes,
        hidden_columns=tuple(row.hidden_columns),
        allow_privileged=row.allow_privileged,
        allow_writes=row.allow_writes,
        allow_routines=row.allow_routines,
    )


@sensitive_variables()
def shown_address(row: DatabaseConnection) -> str:
    """Return the address without a password, or the reason why it is unreadable."""
    if not row.url:
        return ""
    try:
        return str(address_of(row.url.reveal()))
    except (SecretUnreadable, AddressRefused) as error:
        return f"unreadable: {error}"


def own_connections(user: Person) -> QuerySet[DatabaseConnection]:
    """Return the connections that `user` defined on the command line."""
    if not user.is_authenticated:
        return DatabaseConnection.objects.none()
    return DatabaseConnection.objects.filter(owner=user.pk)


def shared_names() -> list[str]:
    """Return the names of shared connections, which operators define, for all agents."""
    rows = DatabaseConnection.objects.filter(agent=None)
    return list(rows.order_by("name").values_list("name", flat=True))


def may_see_all_databases(user: Person) -> bool:
    """Return whether `user` may see every connection, with its limits."""
    return any(has_permission(user, name) for name in (CONFIGURE_DATABASE, VIEW_DATABASE))


def databases_for(user: Person) -> QuerySet[DatabaseConnection]:
    """Return connections of agents that `user` may use, the user's own, or all for operators.

    Never those that others defined on the command line.
    """
    if not user.is_authenticated:
        return DatabaseConnection.objects.none()
    shared = Q(agent=None)
    if not may_see_all_databases(user):
        assigned = DatabaseConnection.agents.through.objects.filter(agent__in=agents_for(user))
        shared &= Q(pk__in=assigned.values("databaseconnection"))
    return DatabaseConnection.objects.filter(shared | Q(owner=user.pk))
