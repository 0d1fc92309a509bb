"""Privileges of a PostgreSQL role beyond reading, read from the server before each statement."""

from __future__ import annotations

from typing import Any

import psycopg

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.target import DatabaseTarget, is_hidden

HOW_TO_MAKE_ONE = (
    "Make a role that can only read, and use it in the connection: CREATE ROLE vel_reader LOGIN "
    "PASSWORD '…'; GRANT USAGE ON SCHEMA public TO vel_reader; GRANT SELECT ON ALL TABLES IN "
    "SCHEMA public TO vel_reader."
)
_NAMES = 5

# By membership, not by active role: set_config('role', …) can activate any of them in a query.
_POWERS = """
SELECT rolname::text, rolsuper, rolreplication, rolbypassrls
FROM pg_catalog.pg_roles
WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER')
  AND (rolsuper OR rolreplication OR rolbypassrls OR rolname IN (
    'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program',
    'pg_signal_backend'))
ORDER BY rolsuper DESC, rolname
"""

# Functions with effects that are not rolled back. Those of the server are for superusers, unless
# they were granted to others; those of dblink are for everybody once it is installed.
_FUNCTIONS = """
SELECT DISTINCT proname::text
FROM pg_catalog.pg_proc p
WHERE (proname IN (
    'pg_read_file', 'pg_read_binary_file', 'pg_ls_dir', 'pg_stat_file', 'pg_read_file_v2',
    'pg_file_write', 'pg_file_rename', 'pg_file_unlink', 'pg_file_sync', 'pg_logdir_ls',
    'lo_import', 'lo_export', 'pg_reload_conf', 'pg_rotate_logfile', 'pg_logfile_rotate',
    'pg_promote', 'pg_switch_wal', 'pg_create_restore_point', 'pg_backup_start',
    'pg_backup_stop', 'pg_start_backup', 'pg_stop_backup', 'pg_stat_reset',
    'pg_stat_statements_reset', 'pg_replication_origin_create', 'pg_replication_origin_drop',
    'pg_wal_replay_pause', 'pg_wal_replay_resume', 'pg_log_backend_memory_contexts')
    OR proname LIKE 'dblink%')
  AND EXISTS (SELECT FROM pg_catalog.pg_roles r
    WHERE pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')
      AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE'))
ORDER BY 1
"""

_READABLE_COLUMNS = """
SELECT n.nspname::text, c.relname::text, a.attname::text
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  AND EXISTS (SELECT FROM pg_catalog.pg_roles r
    WHERE pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')
      AND pg_catalog.has_column_privilege(r.oid, c.oid, a.attnum, 'SELECT'))
"""


def check_role(
    connection: psycopg.Connection[Any], target: DatabaseTarget, own: OwnDatabase
) -> None:
    """Raise QueryFailed unless agents may use the session's role and database."""
    _check_database(connection, target, own)
    if not target.allow_privileged:
        _check_powers(connection, target)
    if target.hidden_columns:
        _check_hidden(connection, target)


def _check_database(
    connection: psycopg.Connection[Any], target: DatabaseTarget, own: OwnDatabase
) -> None:
    if not own.server:
        return
    number = connection.execute(
        "SELECT oid::bigint FROM pg_catalog.pg_database"
        " WHERE datname = pg_catalog.current_database()"
    ).fetchone()
    if number is not None and number[0] != own.database:
        return
    # Another server can use the same number, so the servers' identifiers are compared too.
    try:
        server = connection.execute(
            "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"
        ).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        server = None
    if server is None or server[0] == own.server:
        raise QueryFailed(
            f"{target.name} is Vel's own database, which agents cannot query, or Vel cannot check "
            "this (it needs GRANT EXECUTE ON FUNCTION pg_control_system()).",
            "own_database",
        )


def _check_powers(connection: psycopg.Connection[Any], target: DatabaseTarget) -> None:
    powers = connection.execute(_POWERS).fetchall()
    if powers:
        name, superuser, replication, bypass = powers[0]
        what = (
            "a superuser"
            if superuser
            else "allowed to replicate"
            if replication
            else "exempt from row security"
            if bypass
            else f"a member of {name}"
        )
        raise QueryFailed(
            f"The role of {target.name} is {what}, or can become so, so agents cannot use it. "
            f"{HOW_TO_MAKE_ONE}",
            "privileged",
        )
    functions = [row[0] for row in connection.execute(_FUNCTIONS).fetchall()]
    if functions:
        more = ", …" if len(functions) > _NAMES else ""
        raise QueryFailed(
            f"The role of {target.name} may call {', '.join(functions[:_NAMES])}{more}. A rollback "
            "does not undo their effects. REVOKE EXECUTE on them FROM PUBLIC and from the role.",
            "privileged",
        )


def _check_hidden(connection: psycopg.Connection[Any], target: DatabaseTarget) -> None:
    """Raise QueryFailed if the role can read hidden columns: only the server can hide them."""
    readable = sorted(
        f"{schema}.{table}.{column}"
        for schema, table, column in connection.execute(_READABLE_COLUMNS).fetchall()
        if is_hidden(target, schema, table, column)
    )
    if readable:
        more = ", …" if len(readable) > _NAMES else ""
        raise QueryFailed(
            f"{target.name} cannot be queried: its role can read hidden columns "
            f"({', '.join(readable[:_NAMES])}{more}). REVOKE SELECT on their tables, then GRANT "
            "SELECT (column, …) ON table for the other columns.",
            "hidden_column",
        )
