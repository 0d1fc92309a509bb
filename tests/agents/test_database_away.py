"""Errors of an unreachable database server, and errors of the program."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.utils import load_backend

from agents.database_away import is_away

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def error_of(function: Callable[[], object]) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        function()
    return caught.value


def execute(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def unreachable_server() -> DatabaseError:
    """Return Django's error for an unreachable server."""
    backend = load_backend("django.db.backends.postgresql").DatabaseWrapper
    nowhere = {"HOST": "127.0.0.1", "PORT": "1", "NAME": "x", "USER": "x", "OPTIONS": {}}
    return error_of(backend({**connection.settings_dict, **nowhere}).ensure_connection)


@pytest.mark.parametrize("statement", ["SELECT * FROM no_table", "SELEC 1", "SELECT no_column"])
def test_a_wrong_statement_is_an_error_of_the_program(statement: str) -> None:
    assert not is_away(error_of(lambda: execute(statement)))


def test_a_server_that_does_not_listen_is_away() -> None:
    assert is_away(unreachable_server())


def test_errors_of_other_kinds_are_errors_of_the_program() -> None:
    assert not is_away(None)
    assert not is_away(ValueError("the connection is closed"))
    assert not is_away(DatabaseError("the connection is closed"))


def test_a_connection_that_the_server_has_ended_is_away() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    ended = error_of(lambda: execute("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert is_away(ended)
    connection.close()
    connection.ensure_connection()
    connection.connection.close()
    assert is_away(error_of(lambda: connection.cursor().execute("SELECT 1")))
    connection.close()


def test_a_statement_that_took_too_long_is_an_error_of_the_program() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")

    def wait() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 10; SELECT pg_sleep(600)")

    assert not is_away(error_of(wait))
