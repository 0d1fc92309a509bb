"""Functions that a statement may call when it reads PostgreSQL: all that are not volatile.

A volatile function can have effects that are not rolled back, even in a read-only transaction:
`pg_logical_emit_message` writes to the server's log. So it must be on a reviewed list in this
module. The names are read from the text, which names each called function, except those inside a
view or another function of the database's owner.
"""

from __future__ import annotations

import re

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.postgresql.session import Connection
from agents.features.databases.drivers.target import DatabaseTarget

_BUILT_IN = """
    random random_normal setseed clock_timestamp timeofday gen_random_uuid uuidv4 uuidv7
    pg_sleep pg_sleep_for pg_sleep_until currval lastval lo_get current_query bernoulli system
    pg_relation_size pg_table_size pg_indexes_size pg_total_relation_size pg_database_size
    pg_tablespace_size pg_partition_tree pg_partition_ancestors pg_sequence_last_value
    pg_is_in_recovery pg_is_wal_replay_paused pg_last_wal_receive_lsn pg_last_wal_replay_lsn
    pg_last_xact_replay_timestamp pg_current_wal_lsn pg_current_wal_insert_lsn
    pg_current_wal_flush_lsn pg_blocking_pids pg_jit_available pg_collation_actual_version
    pg_xact_commit_timestamp pg_xact_status txid_status
"""
BUILT_IN = frozenset(_BUILT_IN.split())
"""Functions that are volatile because their results change or are unknown to the planner.

They change no data.
"""
_OF_EXTENSIONS = """
    uuid-ossp.uuid_generate_v1 uuid-ossp.uuid_generate_v1mc uuid-ossp.uuid_generate_v4
    pgcrypto.gen_random_bytes pgcrypto.gen_random_uuid pgcrypto.gen_salt tablefunc.normal_rand
    tsm_system_rows.system_rows tsm_system_time.system_time postgis.st_generatepoints
    timescaledb.time_bucket_gapfill timescaledb.locf timescaledb.interpolate
    pg_stat_statements.pg_stat_statements
"""
_RUNS_TEXT = r"crosstab[234]?|connectby|xpath_table"
RUNS_TEXT = f"""
  (p.proname ~ '^({_RUNS_TEXT})$' AND EXISTS (
    SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
      AND e.extname IN ('tablefunc', 'xml2')))
"""
"""SQL condition for a function `p` of tablefunc or xml2 that runs a statement given as text."""

_FOLLOWS = r"\s*(?:\(|/\*|--)"
_PLAIN = re.compile(rf"([^\W\d][\w$]*){_FOLLOWS}")
_QUOTED = re.compile(rf'(?="((?:[^"]|"")+)"{_FOLLOWS})')
"""At each quotation mark, since only parsing would show which of them start a name."""
_ESCAPED = re.compile(r'[uU]&"')
_GIVEN_TEXT = re.compile(
    rf"""(?=(?:{_RUNS_TEXT})\s*\(\s*
    (?: '(?:[^']|'')*' | \$\$.*?\$\$ | [0-9]+ )
    (?: \s*,\s* (?: '(?:[^']|'')*' | \$\$.*?\$\$ | [0-9]+ ) )* \s*\))""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_NAME_BYTES = 63

_REFUSED = f"""
SELECT DISTINCT n.nspname::text, p.proname::text, p.provolatile <> 'v'
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.proname = ANY(%(names)s)
  AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
  AND (%(runs_text)s AND {RUNS_TEXT} OR p.provolatile = 'v'
    AND CASE WHEN n.nspname = 'pg_catalog'
      THEN p.proname <> ALL(%(built_in)s) AND (p.proacl IS NULL OR NOT %(privileged)s)
      ELSE NOT %(routines)s AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
        WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
          AND e.extname || '.' || p.proname = ANY(%(of_extensions)s))
      END)
ORDER BY 1, 2
"""  # noqa: S608  # a constant
_SHOWN = 5


def check_reading(connection: Connection, target: DatabaseTarget, text: str) -> None:
    """Raise QueryFailed if a statement that reads calls a function that is not allowed."""
    if _ESCAPED.search(text):
        raise QueryFailed('Write names without Unicode escapes (U&"…").', "routine")
    names = called_names(text)
    if not names:
        return
    found = connection.execute(
        _REFUSED,
        {
            "names": sorted(names), "built_in": sorted(BUILT_IN),
            "of_extensions": _OF_EXTENSIONS.split(), "privileged": target.allow_privileged,
            "routines": target.allow_routines, "runs_text": not _texts_are_plain(text),
        },
    ).fetchall()  # fmt: skip
    if not found:
        return
    names_of = [f"{schema}.{name}".removeprefix("pg_catalog.") for schema, name, _ in found]
    shown = ", ".join(names_of[:_SHOWN]) + (", …" if len(names_of) > _SHOWN else "")
    if all(runs_text for _, _, runs_text in found):
        raise QueryFailed(
            f"{shown} may only be called with statements that are plain literals ('…' or $$…$$).",
            "routine",
        )
    raise QueryFailed(
        f"The statement calls {shown}, which is volatile: it could have effects that a rollback "
        "does not undo. The database's owner can declare a function that only reads: ALTER "
        "FUNCTION … STABLE.",
        "routine",
    )


def called_names(text: str) -> set[str]:
    """Return the names of all called functions, and some more: also those in literals."""
    plain = {name.lower() for name in _PLAIN.findall(text)}
    names = plain | {name.replace('""', '"') for name in _QUOTED.findall(text)}
    # The server cuts long names too.
    return {name.encode()[:_NAME_BYTES].decode(errors="ignore") for name in names}


def _texts_are_plain(text: str) -> bool:
    """Return whether all statements given as text are literals, which `called_names` reads.

    This includes statements inside these literals.
    """
    named = re.findall(rf"(?i)(?:{_RUNS_TEXT})", text)
    return len(named) == len(_GIVEN_TEXT.findall(text))
