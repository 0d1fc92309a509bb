"""Define databases for agents. URLs are stored encrypted and never returned to a door."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from django.contrib.auth.models import PermissionsMixin
from django.core.exceptions import ValidationError
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from agents.features.databases.drivers.address import AddressRefused, address_of, checked_url
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import own_database
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.models import DatabaseConnection
from agents.features.databases.queries import CONFIGURE_DATABASE, target_of
from agents.kernel.lazy_modules import lazy_modules
from agents.models import Agent, Run
from agents.secret_text import HIDDEN, SecretText, SecretUnreadable
from agents.selectors.visible import Person
from agents.services.audit import changes_between, fields_of, record
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from agents.states import ACTIVE_RUNS
from sandbox.cancellation import Cancellation

with lazy_modules:
    # The drivers take 8 MiB, and workers import the admin and this module.
    from agents.features.databases.drivers import write


ALLOW_WRITES = "vel_databases.allow_database_writes"
MAX_HIDDEN_COLUMNS = 500
TRIAL_SECONDS = 10.0
_WRITABLE = ("postgresql", "sqlite")
_TOLD = (
    "name",
    "description",
    "dialect",
    "statement_seconds",
    "max_rows",
    "max_bytes",
    "hidden_columns",
    "allow_privileged",
    "allow_writes",
    "allow_routines",
)
"""Fields in the audit log. The URL is a secret and is not among them."""
_COLUMN = re.compile(r"[^.\x00-\x1f]{1,200}(\.[^.\x00-\x1f]{1,200}){0,2}")


def may_configure(user: Person) -> bool:
    """Return whether `user` may define connections and assign them to agents."""
    return isinstance(user, PermissionsMixin) and user.has_perm(CONFIGURE_DATABASE)


def may_allow_writes(user: Person) -> bool:
    """Return whether `user` may define connections with `allow_writes`."""
    return (
        may_configure(user) and isinstance(user, PermissionsMixin) and user.has_perm(ALLOW_WRITES)
    )


@sensitive_variables("url")
def check_connection(connection: DatabaseConnection, url: str) -> SecretText:
    """Return the URL that `save_connection` would store. Raises `InvalidRequest` as it does."""
    _check(connection)
    if not url and not connection.url:
        raise InvalidRequest("url: Enter the URL of the database.", code="invalid_database")
    sealed = seal_url(url) if url else connection.url
    if connection.allow_writes and _dialect_of(sealed) not in _WRITABLE:
        raise InvalidRequest(
            "allow_writes: Only PostgreSQL and SQLite databases can be written.",
            code="invalid_database",
        )
    if connection.hidden_columns and _dialect_of(sealed) == "duckdb":
        raise InvalidRequest(
            "hidden_columns: DuckDB has no way to hide columns. Use a copy of the database without "
            "them.",
            code="invalid_database",
        )
    return sealed


@sensitive_variables("url")
@transaction.atomic
def save_connection(connection: DatabaseConnection, *, url: str, by: Person) -> DatabaseConnection:
    """Store a shared connection. With an empty `url`, its URL does not change.

    Raises `NotAllowed`, or `InvalidRequest` with the name of the field and no part of the URL.
    """
    must_configure(by)
    if connection.is_private:
        raise NotAllowed(
            "This connection was created with another user's command line. Only that user can "
            "change it."
        )
    stored = DatabaseConnection.objects.filter(pk=connection.pk).first()
    if connection.allow_writes or (stored is not None and stored.allow_writes):
        _must_allow_writes(by)
    connection.url = check_connection(connection, url)
    connection.dialect = _dialect_of(connection.url) or connection.dialect
    if connection._state.adding:
        connection.created_by_id = by.pk
    before = None if stored is None else _told(stored)
    changes = changes_between(before, _told(connection))
    if stored is not None and url:
        changes["url"] = (HIDDEN, "another (secret)")
    connection.save()
    action = "database.created" if stored is None else "database.changed"
    record(action, connection, name=connection.name, by=by, changes=changes)
    return connection


def _told(connection: DatabaseConnection) -> dict[str, object]:
    return fields_of(connection, *_TOLD)


@transaction.atomic
def remove_connection(connection_id: str, *, by: Person) -> None:
    """Delete a connection. Active runs cannot use it from their next call on.

    Owners can delete their private connections. Raises `NotFound`, and `NotAllowed` if `by` may not
    define connections.
    """
    row = DatabaseConnection.objects.select_for_update().filter(pk=connection_id).first()
    if row is None:
        raise NotFound("There is no such database connection.")
    if row.owner_id is None or row.owner_id != by.pk:
        must_configure(by)
    record("database.removed", row, name=row.name, by=by)
    row.delete()


@sensitive_variables()
def try_connection(connection: DatabaseConnection, *, by: Person) -> None:
    """Run one statement that reads, with all checks of agents' statements.

    Blocks for the time of connecting and at most `TRIAL_SECONDS`. Raises `NotAllowed`, or
    `Conflict` with the reason, without secrets.
    """
    must_configure(by)
    try:
        target = target_of(connection)
        seconds = min(target.statement_seconds, TRIAL_SECONDS)
        limited = replace(target, statement_seconds=seconds)
        write.execute_sql(limited, "SELECT 1", None, own_database(), Cancellation())
    except (SecretUnreadable, AddressRefused, QueryFailed) as error:
        raise Conflict(str(error), code="database_unavailable") from None


@transaction.atomic
def save_own_connection(
    agent: Agent,
    name: str,
    url: SecretText,
    *,
    allow_writes: bool = False,
    statement_seconds: float = DatabaseTarget.statement_seconds,
    max_rows: int = DatabaseTarget.max_rows,
) -> DatabaseConnection:
    """Set the URL and the limits of the connection `name` of a person's own agent.

    `allow_writes` is for the person's own programs: each write requires approval. `url` comes from
    `seal_url`. Raises `InvalidRequest`, and `Conflict` while a run uses that name for another URL.
    """
    if agent.owner_id is None:
        raise InvalidRequest(
            "An agent without an owner cannot have its own databases. Set an owner first."
        )
    rows = DatabaseConnection.objects.select_for_update()
    row = rows.filter(agent=agent, name=name).first()
    if row is None:
        row = DatabaseConnection(agent=agent, name=name, created_by_id=agent.owner_id)
    elif row.owner_id == agent.owner_id and row.url.same_as(url):
        if (row.allow_writes, row.statement_seconds, row.max_rows) == (
            allow_writes,
            statement_seconds,
            max_rows,
        ):
            return row
    else:
        _refuse_while_used(agent, name)
    row.owner_id, row.url = agent.owner_id, url
    row.dialect, row.allow_writes = _dialect_of(url), allow_writes
    row.statement_seconds, row.max_rows = statement_seconds, max_rows
    _check(row)
    action = "database.created" if row._state.adding else "database.changed"
    row.save()
    changes = {"url": (None, HIDDEN), "agent": (None, agent.slug)}
    record(action, row, name=row.name, by=agent.owner_id, changes=changes)
    return row


@sensitive_variables()
def seal_url(url: str) -> SecretText:
    """Check a URL and encrypt it. Raises `InvalidRequest` without any part of it."""
    try:
        return SecretText.seal(checked_url(url.strip(), resolve=True))
    except AddressRefused as error:
        raise InvalidRequest(f"url: {error}", code="invalid_database") from None


def check_assignable(agent: Agent, connections: Sequence[DatabaseConnection]) -> None:
    """Check for unique names, and that no connection is private to another agent.

    Raises `InvalidRequest`.
    """
    names = [connection.name for connection in connections]
    if len(set(names)) < len(names):
        raise InvalidRequest(
            "databases: Two connections have the same name. Rename one.", code="invalid_agent"
        )
    for connection in connections:
        if connection.is_private and connection.agent_id != agent.pk:
            raise InvalidRequest(
                f"databases: {connection.name} belongs to another agent's command line.",
                code="invalid_agent",
            )


def must_configure(by: Person) -> None:
    """Raise `NotAllowed` if `by` may not define connections."""
    if not may_configure(by):
        raise NotAllowed(f"Defining databases requires the permission {CONFIGURE_DATABASE}.")


def _must_allow_writes(by: Person) -> None:
    if not may_allow_writes(by):
        raise NotAllowed(f"Allowing writes to a database requires the permission {ALLOW_WRITES}.")


@sensitive_variables()
def _dialect_of(url: SecretText) -> str:
    """Return the dialect for the agent's prompt; empty if the URL cannot be decrypted."""
    try:
        return address_of(url.reveal()).dialect
    except (SecretUnreadable, AddressRefused):
        return ""


def _refuse_while_used(agent: Agent, name: str) -> None:
    runs = Run.objects.filter(agent_version__agent=agent, status__in=ACTIVE_RUNS)
    for run in runs.select_related("agent_version"):
        if name in run.spec.get("databases", ()):
            raise Conflict(
                f"The run {run.pk} uses another database as {name}: choose another name, or end "
                "that run first.",
                code="database_in_use",
            )


def _check(connection: DatabaseConnection) -> None:
    columns = connection.hidden_columns
    if not isinstance(columns, list) or len(columns) > MAX_HIDDEN_COLUMNS:
        raise InvalidRequest(
            f"hidden_columns: Expected a list of at most {MAX_HIDDEN_COLUMNS} columns, for example "
            '["users.email"].',
            code="invalid_database",
        )
    for pattern in columns:
        # An invalid pattern would hide no column, without an error.
        if not isinstance(pattern, str) or not _COLUMN.fullmatch(pattern):
            raise InvalidRequest(
                "hidden_columns: Write each as column, table.column or schema.table.column. In "
                "each part, * matches any text.",
                code="invalid_database",
            )
    if not math.isfinite(connection.statement_seconds):  # a comparison with NaN is always false
        raise InvalidRequest("statement_seconds: Expected a number.", code="invalid_database")
    try:
        connection.full_clean(exclude=["url"])
    except ValidationError as error:
        field, problems = next(iter(error.message_dict.items()))
        location = "" if field == "__all__" else f"{field}: "
        raise InvalidRequest(f"{location}{problems[0]}", code="invalid_database") from None
