"""The functions that a PostgreSQL statement calls, read from the server before it runs.

`PREPARE` accepts SELECT, INSERT, UPDATE, DELETE and MERGE only. Then the statement becomes the body
of a function that is never called. The server resolves the names in it, however they are written.
"""

from __future__ import annotations

import re
import secrets

import psycopg

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.postgresql.functions import RUNS_TEXT
from agents.features.databases.drivers.postgresql.session import Connection
from agents.features.databases.drivers.target import DatabaseTarget

_KNOWN = frozenset(
    {
        "nextval", "currval", "lastval", "random", "random_normal", "clock_timestamp", "timeofday",
        "gen_random_uuid", "uuidv4", "uuidv7", "pg_notify", "txid_current", "pg_current_xact_id",
    }
)  # fmt: skip
"""Volatile built-in functions whose effects are rolled back or only use up numbers."""
_NAME = re.compile(r'([A-Za-z_][A-Za-z0-9_$]*|"(?:[^"]|"")+")\s*\(')
_LITERAL = re.compile(r"""[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'""", re.DOTALL)

_CALLED = f"""
WITH RECURSIVE used(classid, objid) AS (
  SELECT 'pg_catalog.pg_proc'::regclass::oid, %(probe)s::oid
  UNION
  SELECT n.classid, n.objid FROM used u, LATERAL (
    SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d
    WHERE d.classid = u.classid AND d.objid = u.objid
      AND d.refclassid IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass,
        'pg_catalog.pg_class'::regclass)
    UNION ALL
    SELECT 'pg_catalog.pg_rewrite'::regclass, r.oid FROM pg_catalog.pg_rewrite r
    WHERE u.classid = 'pg_catalog.pg_class'::regclass AND r.ev_class = u.objid
    UNION ALL
    SELECT 'pg_catalog.pg_proc'::regclass, o.oprcode::oid FROM pg_catalog.pg_operator o
    WHERE u.classid = 'pg_catalog.pg_operator'::regclass AND o.oid = u.objid
  ) AS n(classid, objid)
)
SELECT DISTINCT p.proname::text FROM used u JOIN pg_catalog.pg_proc p ON p.oid = u.objid
WHERE u.classid = 'pg_catalog.pg_proc'::regclass AND p.oid <> %(probe)s::oid
  AND (p.provolatile = 'v' OR p.prosecdef OR {RUNS_TEXT})
  AND p.pronamespace <> 'pg_catalog'::regnamespace
ORDER BY 1
"""  # noqa: S608  # a constant

_BUILT_IN = """
SELECT DISTINCT proname::text FROM pg_catalog.pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v' AND prokind = 'f'
  AND proname = ANY(%s) ORDER BY 1
"""


def check_calls(connection: Connection, target: DatabaseTarget, text: str) -> bool:
    """Return whether the statement returns rows.

    Raises QueryFailed for calls that are not allowed.
    """
    name = f"vel_{secrets.token_hex(8)}"
    cursor = psycopg.RawCursor(connection)
    cursor.execute("SAVEPOINT vel_look")
    cursor.execute(f"PREPARE {name} AS {text}", [], binary=True)
    found = connection.execute(
        "SELECT parameter_types::text[] FROM pg_catalog.pg_prepared_statements WHERE name = %s",
        [name],
    ).fetchone()
    assert found is not None
    gives_rows = connection.pgconn.describe_prepared(name.encode()).nfields > 0
    connection.execute(f"DEALLOCATE {name}")
    try:
        cursor.execute(
            f"CREATE FUNCTION pg_temp.{name}({', '.join(found[0])}) RETURNS void LANGUAGE sql"
            f" BEGIN ATOMIC {text}\n; END",
            [],
            binary=True,
        )
    except psycopg.errors.InsufficientPrivilege as problem:
        if "temporary" not in str(problem) and "language" not in str(problem):
            raise
        raise QueryFailed(
            f"The role of {target.name} cannot look at a statement before it runs: GRANT TEMPORARY "
            "ON DATABASE … TO it.",
            "configuration",
        ) from None
    row = connection.execute(
        "SELECT p.oid::bigint, pg_catalog.pg_get_function_sqlbody(p.oid) FROM pg_catalog.pg_proc p"
        " WHERE p.proname = %s AND p.pronamespace = pg_catalog.pg_my_temp_schema()",
        [name],
    ).fetchone()
    assert row is not None
    if not target.allow_routines:
        called = {row[0] for row in connection.execute(_CALLED, {"probe": row[0]}).fetchall()}
        words = {
            word.strip('"').replace('""', '"') for word in _NAME.findall(_LITERAL.sub("''", row[1]))
        }
        built_in = connection.execute(_BUILT_IN, [sorted(words - _KNOWN)]).fetchall()
        refuse_routines(target, "calls", sorted(called | {row[0] for row in built_in}))
    # Released too, since later statements would otherwise run in a subtransaction with its own
    # number.
    connection.execute("ROLLBACK TO SAVEPOINT vel_look; RELEASE SAVEPOINT vel_look")
    return gives_rows


def refuse_routines(target: DatabaseTarget, what: str, names: list[str]) -> None:
    """Raise QueryFailed if there are any names."""
    if names:
        raise QueryFailed(
            f"The statement {what} {', '.join(names[:5])}{', …' if len(names) > 5 else ''}. Trying "
            f"it would run that, and the connection {target.name} does not allow it: an operator "
            "can.",
            "routine",
        )
