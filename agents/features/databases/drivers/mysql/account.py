"""Privileges of a MySQL account beyond reading, read from the server before each statement."""

from __future__ import annotations

import re

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.hidden import is_hidden
from agents.features.databases.drivers.mysql.connection import MysqlSession
from agents.features.databases.drivers.target import DatabaseTarget

HOW_TO_MAKE_ONE = (
    "Make an account that can only read, and use it in the connection: CREATE USER "
    "'vel_reader'@'%' IDENTIFIED BY '…'; GRANT SELECT ON shop.* TO 'vel_reader'@'%'."
)
_NAMES = 5
_READING = frozenset({"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES"})
_QUOTED = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL)
_COLUMNS = re.compile(r"\([^()]*\)")
_GRANT = re.compile(r"GRANT (?P<what>.+?) ON .*? TO (?P<rest>.*)", re.DOTALL)
_GIVES_NOTHING = re.compile(r"GRANT (?!.* ON ).* TO .*|SET DEFAULT ROLE .*|REVOKE .*", re.DOTALL)
"""Lines without privileges: Vel's sessions disable roles, and partial revokes remove privileges."""

SYSTEM_SCHEMAS = "'mysql', 'information_schema', 'performance_schema', 'sys'"
_READABLE_ACCOUNTS = """
SELECT TABLE_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = 'mysql' AND FIND_IN_SET('select', PRIVILEGES) LIMIT 1
"""
READABLE_COLUMNS = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA NOT IN ({SYSTEM_SCHEMAS}) AND FIND_IN_SET('select', PRIVILEGES)
"""  # noqa: S608  # a constant


def check_account(session: MysqlSession, target: DatabaseTarget) -> None:
    """Raise QueryFailed unless agents may use the session's account."""
    if not target.allow_privileged:
        _check_grants(session, target)
    if target.hidden_columns:
        _check_hidden(session, target)


def _check_grants(session: MysqlSession, target: DatabaseTarget) -> None:
    excess = sorted({power for row in session.execute("SHOW GRANTS") for power in powers(row[0])})
    if excess:
        more = ", …" if len(excess) > _NAMES else ""
        raise QueryFailed(
            f"The account of {target.name} may do more than read ({', '.join(excess[:_NAMES])}"
            f"{more}) and is not lent to agents. {HOW_TO_MAKE_ONE}",
            "privileged",
        )
    if session.execute(_READABLE_ACCOUNTS):
        raise QueryFailed(
            f"The account of {target.name} may read the server's own tables (mysql.*), where "
            "passwords of accounts lie: grant SELECT on single databases, not on *.*. "
            f"{HOW_TO_MAKE_ONE}",
            "privileged",
        )


def powers(grant: str) -> set[str]:
    """Return the privileges beyond reading in a line of SHOW GRANTS. An unknown line is one."""
    line = _COLUMNS.sub("", _QUOTED.sub("``", grant))
    found = _GRANT.fullmatch(line)
    if found is None:
        return set() if _GIVES_NOTHING.fullmatch(line) else {"what is not known"}
    named = {name.strip() for name in found["what"].split(",")} - _READING
    if "GRANT OPTION" in found["rest"]:
        named.add("GRANT OPTION")
    return named


def _check_hidden(session: MysqlSession, target: DatabaseTarget) -> None:
    """Raise QueryFailed if the account can read hidden columns: only the server can hide them."""
    readable = sorted(
        f"{schema}.{table}.{column}"
        for schema, table, column in session.execute(READABLE_COLUMNS)
        if is_hidden(target, schema, table, column)
    )
    if readable:
        more = ", …" if len(readable) > _NAMES else ""
        raise QueryFailed(
            f"{target.name} cannot be queried: its account can read columns that are to be hidden "
            f"({', '.join(readable[:_NAMES])}{more}). REVOKE SELECT on their tables and databases, "
            "then GRANT SELECT (column, …) ON table for those that may be read.",
            "hidden_column",
        )
