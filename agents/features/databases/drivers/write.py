"""The entry point for statements that write: tried, then committed if the changes are as shown.

A trial runs the statement twice: on copies of a SQLite database, and in transactions that are
rolled back on PostgreSQL. This detects values that differ each time (of now(), of a sequence). It
changes no row. On PostgreSQL it leaves a gap in a sequence, and holds locks while it runs.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.utils.crypto import salted_hmac

from agents.features.databases.drivers.address import dialect_of
from agents.features.databases.drivers.changes import (
    Changes,
    digest_of,
    summary,
    unstable_columns,
    unstable_of,
)
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.helper.client import ask_for_rows, ask_to_try, ask_to_write
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.params import with_simple_values, without_value
from agents.features.databases.drivers.statement import is_empty, word_of_change
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation

_NO_VALUE = re.compile(r"""near ['"]:|did not supply a value""")
"""In an error about a parameter without a value, which is a syntax error for most databases."""
Preview = dict[str, Any]
"""A `drivers.changes.summary` with the `database` and the `digest` of all changes."""
_LONGEST_PAUSE = 0.1
"""Longest pause in seconds between two attempts of a statement."""


class NotAsShown(QueryFailed):
    """The statement would make other changes now. No data was written."""

    def __init__(self) -> None:
        super().__init__(
            "The rows have changed since the approval, so nothing was written. Make the call again "
            "for a new approval.",
            "changed",
        )


def try_sql(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
    cancel: Cancellation,
) -> Preview:
    """Return a preview of one statement's changes. Blocks. Raises QueryFailed."""
    given = _checked(target, query, params)
    with _explained(target, query, params):
        first = ask_to_try(target, own, cancel, query, given)
        second = ask_to_try(target, own, cancel, query, given)
    if not first.tables and not second.tables:
        raise QueryFailed("No row matches, so the statement would change nothing.", "no_change")
    unstable = unstable_columns(first, second)
    return {
        "database": target.name,
        **summary(second, unstable),
        "digest": _bound(target, digest_of(second, unstable)),
    }


def write_sql(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
    cancel: Cancellation,
    approved: Preview,
) -> Changes:
    """Make the approved changes. Blocks.

    Raises `NotAsShown` if the changes would differ, QueryFailed, and `OutcomeUnknown`. Only after
    the last one the changes may have been made.
    """
    unstable = unstable_of(approved)

    def as_shown(changes: Changes) -> bool:
        if _bound(target, digest_of(changes, unstable)) != approved["digest"]:
            raise NotAsShown
        return True

    given = _checked(target, query, params)
    return ask_to_write(target, own, cancel, query, given, as_shown)


def write_now(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
    cancel: Cancellation,
) -> Changes:
    """Run and commit one statement that needs no approval. Blocks.

    A statement that conflicts with another transaction runs again, for at most
    `target.statement_seconds`. Raises QueryFailed, and `OutcomeUnknown` as `write_sql` does.
    """
    given = _checked(target, query, params)
    end = time.monotonic() + target.statement_seconds
    while True:
        try:
            with _explained(target, query, params):
                return ask_to_write(target, own, cancel, query, given, lambda changes: True)
        except QueryFailed as problem:
            if problem.code != "conflict" or cancel.cancelled or time.monotonic() > end:
                raise
        time.sleep(random.uniform(0, _LONGEST_PAUSE))  # noqa: S311  # avoids a new conflict


def _checked(
    target: DatabaseTarget, query: str, params: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return the parameters in the database's form. Raises QueryFailed if it is read-only."""
    if not target.allow_writes:
        raise QueryFailed(f"{target.name} can only be read.", "read_only")
    if dialect_of(target) == "duckdb":
        raise QueryFailed("DuckDB databases can only be read.", "read_only")
    if dialect_of(target) == "mysql":
        raise QueryFailed("MySQL and MariaDB databases can only be read.", "read_only")
    _check_text(query)
    return params if dialect_of(target) == "postgresql" else with_simple_values(params)


def _bound(target: DatabaseTarget, digest: str) -> str:
    """Return an HMAC of the digest and its connection."""
    # With a key, since the shown value could otherwise be used to guess the URL's password.
    told_of = json.dumps([target.name, target.url, digest])
    return salted_hmac("vel.database.write", told_of, algorithm="sha256").hexdigest()


def execute_sql(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
    cancel: Cancellation,
) -> QueryResult:
    """Run one statement that reads. Blocks. Raises QueryFailed if there is no result.

    `params` are values for `:name` in the statement. Lists are arrays for PostgreSQL, lists for
    DuckDB, and JSON text for SQLite and MySQL, where `json_each(:name)` and `JSON_TABLE` read them.
    """
    _check_text(query)
    given = with_simple_values(params) if dialect_of(target) in ("sqlite", "mysql") else params
    with _explained(target, query, params):
        return ask_for_rows(target, own, cancel, {"do": "query", "text": query, "params": given})


def _check_text(query: str) -> None:
    """Refuse a NUL character, at which drivers would cut the statement, and an empty one."""
    if "\0" in query:
        raise QueryFailed("A statement cannot contain NUL characters.", "invalid")
    if is_empty(query):
        raise QueryFailed("The statement is empty.", "invalid")


@contextmanager
def _explained(
    target: DatabaseTarget, query: str, params: Mapping[str, Any] | None
) -> Iterator[None]:
    """Name the mistake in an error of the database that only shows its place."""
    try:
        yield
    except QueryFailed as problem:
        text = str(problem)
        if problem.code != "database":
            raise
        missing = without_value(query, params, mysql=dialect_of(target) == "mysql")
        if missing and _NO_VALUE.search(text):
            raise QueryFailed(f"params has no value for {', '.join(missing)}.", "invalid") from None
        word = "" if target.allow_writes else word_of_change(query)
        if word:
            refusal = f"{target.name} can only be read: {word} is not allowed in read-only mode."
            raise QueryFailed(f"{refusal} {text}", problem.code) from None
        raise
