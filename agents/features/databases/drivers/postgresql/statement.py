"""The tables that a PostgreSQL statement writes and the functions that it calls.

Both are read from the server before the statement runs.

`PREPARE` accepts SELECT, INSERT, UPDATE, DELETE and MERGE only. Then the statement becomes the body
of a function that is never called. The server resolves the names in it, however they are written.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from typing import Any

import psycopg

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.postgresql.functions import RUNS_TEXT
from agents.features.databases.drivers.postgresql.session import Connection
from agents.features.databases.drivers.target import DatabaseTarget, is_hidden

_MOST_TABLES = 100
_OLDEST = 140_000

_REACHED = """
WITH RECURSIVE linked(one, other) AS (
  SELECT confrelid, conrelid FROM pg_catalog.pg_constraint
  WHERE contype = 'f' AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
  UNION ALL SELECT inhparent, inhrelid FROM pg_catalog.pg_inherits
), reached(oid) AS (
  SELECT unnest(%s::oid[]) UNION SELECT l.other FROM reached r JOIN linked l ON l.one = r.oid
)
SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text,
  pg_catalog.pg_relation_size(c.oid), pg_catalog.has_table_privilege(c.oid, 'SELECT'),
  ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
  ARRAY(SELECT t.tgname::text FROM pg_catalog.pg_trigger t
    WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D' ORDER BY 1),
  ARRAY(SELECT w.rulename::text FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid ORDER BY 1),
  ARRAY(SELECT DISTINCT p.proname::text FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_proc p ON p.oid = d.refobjid
    WHERE d.refclassid = 'pg_catalog.pg_proc'::regclass AND (p.provolatile = 'v' OR p.prosecdef)
      AND ((d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid IN
          (SELECT x.oid FROM pg_catalog.pg_attrdef x WHERE x.adrelid = c.oid))
        OR (d.classid = 'pg_catalog.pg_constraint'::regclass AND d.objid IN
          (SELECT x.oid FROM pg_catalog.pg_constraint x WHERE x.conrelid = c.oid))
        OR (d.classid = 'pg_catalog.pg_policy'::regclass AND d.objid IN
          (SELECT x.oid FROM pg_catalog.pg_policy x WHERE x.polrelid = c.oid))) ORDER BY 1)
FROM reached JOIN pg_catalog.pg_class c ON c.oid = reached.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY 2, 3
"""

_REFERRING = """
SELECT f.relname::text, n.nspname::text, a.attname::text FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_class f ON f.oid = k.conrelid
JOIN pg_catalog.pg_namespace n ON n.oid = f.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = f.oid AND a.attnum = ANY(k.conkey)
WHERE k.contype = 'f' AND k.confrelid = ANY(%s::oid[])
"""


@dataclass(frozen=True)
class WrittenTable:
    """A table that a statement writes, directly or by foreign keys and partitions."""

    oid: int
    schema: str
    name: str
    kind: str
    bytes: int
    readable: bool
    columns: tuple[str, ...]

    @property
    def shown(self) -> str:
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Looked:
    """The tables that a statement may change, and whether it gives rows (RETURNING)."""

    tables: list[WrittenTable]
    gives_rows: bool


def look_at(connection: Connection, target: DatabaseTarget, text: str, values: list[Any]) -> Looked:
    """Return the tables that a statement would write. Raises QueryFailed if it is not allowed.

    It needs a read-write transaction. No part of the statement runs.
    """
    if connection.info.server_version < _OLDEST:
        raise QueryFailed("Writing needs PostgreSQL 14 or newer.", "configuration")
    gives_rows = check_calls(connection, target, text)
    # Without `binary`, a statement without parameters would use the simple protocol.
    cursor = psycopg.RawCursor(connection)
    cursor.execute(f"EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) {text}", values, binary=True)
    plans = [plan for row in cursor.fetchall() for plan in _loaded(row[0])]
    written = sorted({place for plan in plans for place in _modified(plan["Plan"])})
    if not written:
        raise QueryFailed("The statement changes no table.", "no_change")
    oids = [
        connection.execute(
            "SELECT c.oid::bigint FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
            " ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
            place,
        ).fetchone()
        for place in written
    ]
    rows = connection.execute(_REACHED, [[row[0] for row in oids if row]]).fetchall()
    return Looked(_checked_tables(connection, target, rows), gives_rows)


def _checked_tables(
    connection: Connection, target: DatabaseTarget, rows: list[Any]
) -> list[WrittenTable]:
    if len(rows) > _MOST_TABLES:
        raise QueryFailed(f"It may change more than {_MOST_TABLES} tables.", "too_much")
    tables = []
    for oid, schema, name, kind, size, readable, columns, triggers, rules, functions in rows:
        table = WrittenTable(oid, schema, name, kind, size, readable, tuple(columns))
        if kind not in ("r", "p") or rules or schema.startswith("pg_"):
            raise QueryFailed(
                f"{table.shown} is not an ordinary table, or has rules, so it cannot be written.",
                "configuration",
            )
        if not target.allow_routines:
            refuse_routines(target, f"fires triggers of {table.shown}:", triggers)
            refuse_routines(target, f"makes {table.shown} call", functions)
        if any(is_hidden(target, schema, name, column) for column in columns):
            raise _hidden(table.shown)
        tables.append(table)
    referring = connection.execute(_REFERRING, [[table.oid for table in tables]]).fetchall()
    for name, schema, column in referring:
        # The success of a change would reveal whether the hidden column refers to a row.
        if is_hidden(target, schema, name, column):
            raise _hidden(name)
    return tables


def _hidden(table: str) -> QueryFailed:
    return QueryFailed(
        f"{table} has hidden columns, so this table and the tables that it refers to cannot be "
        "written.",
        "hidden_column",
    )


def _loaded(value: Any) -> list[dict[str, Any]]:
    return json.loads(value) if isinstance(value, str | bytes) else value


def _modified(node: dict[str, Any]) -> set[tuple[str, str]]:
    """Return (schema, table) of every node of a plan that writes."""
    found = set()
    if node["Node Type"] == "ModifyTable" or node.get("Operation") in (
        "Insert",
        "Update",
        "Delete",
    ):
        for place in [node, *node.get("Target Tables", ())]:
            if "Relation Name" in place:
                found.add((str(place["Schema"]), str(place["Relation Name"])))
    for child in node.get("Plans", ()):
        found |= _modified(child)
    return found


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
    """Raise QueryFailed if `names` has names of functions or triggers.

    `what` is the verb of the message, as `calls`.
    """
    if names:
        raise QueryFailed(
            f"The statement {what} {', '.join(names[:5])}{', …' if len(names) > 5 else ''}. A "
            f"trial would run this code, which the connection {target.name} does not allow. An "
            "operator can allow it.",
            "routine",
        )
