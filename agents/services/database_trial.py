"""Trying a connection."""

from __future__ import annotations

from dataclasses import replace

from django.views.decorators.debug import sensitive_variables

from agents.databases.address import AddressRefused
from agents.databases.errors import QueryFailed
from agents.databases.own_database import own_database
from agents.models import DatabaseConnection
from agents.secret_text import SecretUnreadable
from agents.selectors.databases import target_of
from agents.selectors.visible import Person
from agents.services.databases import must_configure
from agents.services.errors import Conflict
from sandbox.cancellation import Cancellation

TRIAL_SECONDS = 10.0


@sensitive_variables()
def try_connection(connection: DatabaseConnection, *, by: Person) -> None:
    """Run one statement that reads, with all the checks that agents' statements meet.

    Blocks for as long as connecting and `TRIAL_SECONDS` take. Raises `NotAllowed`, or `Conflict`
    with the reason, without secrets.
    """
    # The drivers, 8 MiB: the admin, and with it this, is also imported by workers.
    from agents.databases.execute import execute_sql  # noqa: PLC0415

    must_configure(by)
    try:
        target = target_of(connection)
        seconds = min(target.statement_seconds, TRIAL_SECONDS)
        limited = replace(target, statement_seconds=seconds)
        execute_sql(limited, "SELECT 1", None, own_database(), Cancellation())
    except (SecretUnreadable, AddressRefused, QueryFailed) as error:
        raise Conflict(str(error), code="database_unavailable") from None
