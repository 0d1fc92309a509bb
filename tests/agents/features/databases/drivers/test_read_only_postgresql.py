"""Agents cannot change anything in PostgreSQL, not even the session of the next agent."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.postgresql.functions import _texts_are_plain
from agents.features.databases.drivers.target import DatabaseTarget
from tests.agents.features.databases.drivers.shop import admin_of, ask

pytestmark = pytest.mark.postgresql

REFUSED = {
    "insert": "INSERT INTO customers VALUES (9, 'x', 'y')",
    "update": "UPDATE customers SET name = 'x'",
    "delete": "DELETE FROM orders",
    "merge": "MERGE INTO orders o USING customers c ON true WHEN MATCHED THEN DELETE",
    "cte-delete": "WITH x AS (DELETE FROM orders RETURNING 1) SELECT * FROM x",
    "cte-main": "WITH x AS (SELECT 1) DELETE FROM orders",
    "select-into": "SELECT * INTO x FROM orders",
    "create-as": "CREATE TABLE x AS SELECT * FROM orders",
    "temp-table": "CREATE TEMP TABLE x (y int)",
    "drop": "DROP TABLE orders",
    "truncate": "TRUNCATE orders",
    "alter": "ALTER TABLE orders ADD x int",
    "grant": "GRANT ALL ON orders TO PUBLIC",
    "comment-on": "COMMENT ON TABLE orders IS 'x'",
    "several": "SELECT 1; DELETE FROM orders",
    "several-commit": "SELECT 1; COMMIT; DELETE FROM orders",
    "several-escape": "SELECT 1; COMMIT; BEGIN READ WRITE; DELETE FROM orders; COMMIT",
    "several-commented": "SELECT 1 /* ' */ ; DELETE FROM orders -- '",
    "several-quoted": "SELECT $$;$$; DELETE FROM orders",
    "comment-first": "/* SELECT */ DELETE FROM orders",
    "read-write": "SET TRANSACTION READ WRITE",
    "begin": "BEGIN READ WRITE",
    "commit": "COMMIT",
    "commit-chain": "COMMIT AND CHAIN",
    "rollback": "ROLLBACK",
    "savepoint": "SAVEPOINT x",
    "set": "SET default_transaction_read_only = off",
    "set-role": "SET ROLE vel",
    "reset": "RESET ALL",
    "discard": "DISCARD ALL",
    "copy-out": "COPY orders TO STDOUT",
    "copy-in": "COPY orders FROM STDIN",
    "copy-file": "COPY orders TO '{beside}'",
    "copy-program": "COPY orders TO PROGRAM 'touch {beside}'",
    "do": "DO $$ BEGIN DELETE FROM orders; END $$",
    "call": "CALL purge()",
    "prepare": "PREPARE x AS DELETE FROM orders",
    "execute": "EXECUTE x",
    "deallocate": "DEALLOCATE ALL",
    "explain-analyze": "EXPLAIN ANALYZE DELETE FROM orders",
    "vacuum": "VACUUM orders",
    "analyze": "ANALYZE orders",
    "cluster": "CLUSTER orders USING orders_pkey",
    "refresh": "REFRESH MATERIALIZED VIEW x",
    "lock": "LOCK TABLE orders",
    "listen": "LISTEN x",
    "notify": "NOTIFY x",
    "load": "LOAD 'auto_explain'",
    "checkpoint": "CHECKPOINT",
    "for-update": "SELECT * FROM orders FOR UPDATE",
    "for-share": "SELECT * FROM orders FOR KEY SHARE",
    "nextval": "SELECT nextval('numbers')",
    "setval": "SELECT setval('numbers', 99)",
    "function": "SELECT sneaky()",
    "function-in-view": "SELECT * FROM trap",
    "definer": "SELECT mighty()",
    "immutable": "SELECT honest()",
    "read-write-function": "SELECT set_config('transaction_read_only', 'off', false)",
    "dynamic": "SELECT query_to_xml('DELETE FROM orders', true, true, '')",
    "read-file": "SELECT pg_read_file('/etc/passwd')",
    "list-directory": "SELECT pg_ls_dir('/')",
    "lo-export": "SELECT lo_export(1, '{beside}')",
    "lo-import": "SELECT lo_import('/etc/passwd')",
    "reload": "SELECT pg_reload_conf()",
    "rotate": "SELECT pg_rotate_logfile()",
    "close-cursor": "CLOSE ALL",
    "fetch": "FETCH 1 FROM vel_rows",
    "declare": "DECLARE x CURSOR WITH HOLD FOR SELECT 1",
}  # fmt: skip

VOLATILE = {
    "log": "SELECT pg_logical_emit_message(false, 'x', repeat('y', 1000000))",
    "log-case": "SELECT PG_Catalog . Pg_Logical_Emit_Message (false, 'x', 'y')",
    "log-quoted": "SELECT \"pg_logical_emit_message\"(false, 'x', 'y')",
    "log-among-marks": "SELECT '\"', \"pg_logical_emit_message\"(false, 'x', 'y'), '\"('",
    "log-plain-among-marks": "SELECT '\"', pg_logical_emit_message(false, 'x', 'y'), '\"('",
    "log-commented": "SELECT pg_logical_emit_message/* /* ( */ */(false, 'x', 'y')",
    "log-line-comment": "SELECT pg_logical_emit_message -- (\n(false, 'x', 'y')",
    "log-escaped": "SELECT U&\"pg\\005flogical_emit_message\"(false, 'x', 'y')",
    "log-own-escape": "SELECT u&\"pg!005flogical_emit_message\" UESCAPE '!'(false, 'x', 'y')",
    "log-in-from": "SELECT * FROM pg_logical_emit_message(false, 'x', 'y')",
    "log-in-limit": "SELECT 1 LIMIT pg_logical_emit_message(false, 'x', 'y') - '0/0'",
    "log-in-values": "VALUES (pg_logical_emit_message(false, 'x', 'y'))",
    "log-in-text": "SELECT query_to_xml('SELECT pg_logical_emit_message(false, ''x'', ''y'')',"
    " true, true, '')",
    "log-in-words": "SELECT ts_stat('SELECT pg_logical' || '_emit_message(false, ''x'', ''y'')')",
    "large-object": "SELECT lo_create(0)",
    "large-object-text": "SELECT lo_from_bytea(0, 'x')",
    "notify-function": "SELECT pg_notify('x', 'y')",
    "advisory-lock": "SELECT pg_advisory_lock(42)",
    "snapshot": "SELECT pg_export_snapshot()",
    "another-session": "SELECT pg_terminate_backend(pg_backend_pid())",
    "setting": "SELECT set_config('search_path', 'nowhere', false)",
    "later-setting": "SELECT set_config('default_transaction_read_only', 'off', false)",
    "timeout-setting": "SELECT set_config('statement_timeout', '0', false)",
    "application": "SELECT set_config('application_name', 'leak', false)",
}  # fmt: skip
"""The server undoes some of these at the end of the transaction or of the session, but not all."""


def contents(admin: psycopg.Connection[tuple[object, ...]]) -> str:
    """Return a checksum of the database's data, of its catalogue and of the shared catalogue."""
    parts = [
        admin.execute("TABLE customers").fetchall(),
        admin.execute("TABLE orders").fetchall(),
        admin.execute(
            "SELECT attrelid::int, attname, attnum FROM pg_attribute ORDER BY 1, 3"
        ).fetchall(),
        admin.execute("SELECT last_value, is_called FROM numbers").fetchall(),
        admin.execute("SELECT * FROM pg_largeobject_metadata").fetchall(),
        admin.execute("SELECT oid::int, relname, relacl::text FROM pg_class ORDER BY 1").fetchall(),
        admin.execute("SELECT oid::int, proname FROM pg_proc ORDER BY 1").fetchall(),
        admin.execute("SELECT description FROM pg_description ORDER BY 1").fetchall(),
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def session(target: DatabaseTarget) -> tuple[object, ...]:
    """Return the state of the session as the next agent finds it."""
    return ask(
        target,
        "SELECT current_user = session_user, current_setting('search_path'),"
        " current_setting('application_name'), current_setting('transaction_read_only'),"
        " current_setting('default_transaction_read_only'),"
        " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),"
        " (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors),"
        " (SELECT count(*) FROM pg_listening_channels())",
    ).values[0]


CLEAN = (True, '"$user", public', "vel", "on", "on", 0, 0, 1, 0)
"""The one cursor is that of this query."""


@pytest.mark.parametrize("name", [*REFUSED, *VOLATILE])
def test_no_attempt_changes_anything(
    name: str, lasting_writer_shop: DatabaseTarget, postgres_url: str, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    query = {**REFUSED, **VOLATILE}[name].replace("{beside}", str(tmp_path / "beside"))
    with admin_of(lasting_writer_shop, postgres_url) as admin:
        before = contents(admin)
        with pytest.raises(QueryFailed) as refused:
            ask(lasting_writer_shop, query)
        assert name in REFUSED or refused.value.code == "routine"
        assert session(lasting_writer_shop) == CLEAN
        assert contents(admin) == before
    assert not list(tmp_path.iterdir())


ANALYTICS = [
    "SELECT now(), random(), clock_timestamp(), gen_random_uuid(), pg_sleep(0)",
    "SELECT date_trunc('month', now()), to_char(now(), 'YYYY-MM'), extract(year FROM now())",
    "SELECT g, sum(g) OVER (ORDER BY g), lag(g) OVER () FROM generate_series(1, 5) g",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total), avg(total), count(*) FROM orders",
    "SELECT jsonb_build_object('a', 1) -> 'a', jsonb_path_query('[1]'::jsonb, '$[*]')",
    "SELECT * FROM jsonb_to_recordset('[{\"a\": 1}]') AS x(a int)",
    "SELECT string_agg(name, ', '), array_agg(id ORDER BY id) FROM customers",
    "SELECT regexp_replace(name, 'a', 'b'), initcap(name), md5(name) FROM customers",
    "SELECT to_tsvector('simple', name) @@ to_tsquery('simple', 'ada') FROM customers",
    "SELECT pg_size_pretty(pg_total_relation_size('orders')), pg_database_size('postgres')",
    "SELECT count(*) FROM pg_stat_activity, pg_locks",
    "SELECT count(*) FROM orders TABLESAMPLE bernoulli (100)",
    "SELECT loud(name), name || '(pg_nothing(' FROM customers",
    "SELECT current_setting('search_path'), version(), current_query()",
]


@pytest.mark.parametrize("query", ANALYTICS)
def test_queries_of_analysts_are_allowed(
    query: str, postgres_shop: DatabaseTarget, postgres_url: str
) -> None:
    with admin_of(postgres_shop, postgres_url) as admin:
        admin.execute(
            "CREATE FUNCTION loud(text) RETURNS text STABLE LANGUAGE sql AS $$ SELECT upper($1) $$"
        )
    assert ask(postgres_shop, query).row_count > 0


def test_functions_of_extensions(postgres_shop: DatabaseTarget, postgres_url: str) -> None:
    statements = {
        "uuid-ossp": ["SELECT uuid_generate_v4()"],
        "pgcrypto": ["SELECT gen_random_bytes(4), crypt('x', gen_salt('md5')), digest('x', 'md5')"],
        "tablefunc": [
            "SELECT * FROM crosstab('SELECT 1, ''a'', 2') AS t(id int, a int)",
            "SELECT * FROM crosstab($$SELECT 1, 'a', 2$$, 'VALUES (''a'')') AS t(id int, a int)",
            "SELECT normal_rand(1, 0, 1)",
        ],
        "pg_trgm": ["SELECT similarity('a', 'b')"],
    }  # fmt: skip
    with admin_of(postgres_shop, postgres_url) as admin:
        # A minimal server has no extensions.
        for (name,) in admin.execute("SELECT name FROM pg_available_extensions").fetchall():
            for query in statements.get(name, ()):
                admin.execute(f'CREATE EXTENSION IF NOT EXISTS "{name}"')
                assert ask(postgres_shop, query).row_count == 1
            if name == "tablefunc":
                hidden = (
                    "crosstab('SELECT 1, 2, pg_logical_' || 'emit_message(false, ''x'', ''y'')')"
                )
                for query in (hidden, f"crosstab($$SELECT * FROM {hidden} AS t(a int, b int)$$)"):
                    with pytest.raises(QueryFailed, match="plain literals"):
                        ask(postgres_shop, f"SELECT * FROM {query} AS t(a int, b pg_lsn)")


def test_a_statement_as_text_must_be_a_literal() -> None:
    for text in ("crosstab('a')", "crosstab3($$a$$, 'b')", "x.crosstab ( 'a''b' , 3 )", "SELECT 1"):
        assert _texts_are_plain(text), text
    for text in (
        "crosstab('a' || 'b')", "crosstab(E'a')", "crosstab('a'\n'b')", '"crosstab"(\'a\')',
        "crosstab($$ crosstab('a' || 'b') $$)", "crosstab(sql)", "crosstab(/* */ 'a')",
        "CrossTab('crosstab(''a'' || ''b'')')", "connectby('a', name)",
    ):  # fmt: skip
        assert not _texts_are_plain(text), text


def test_an_operator_allows_functions_of_the_database(
    writer_shop: DatabaseTarget, postgres_url: str
) -> None:
    with admin_of(writer_shop, postgres_url) as admin:
        admin.execute("CREATE FUNCTION seven() RETURNS int VOLATILE LANGUAGE sql AS 'SELECT 7'")
        with pytest.raises(QueryFailed, match=r"public\.seven.*STABLE"):
            ask(writer_shop, "SELECT seven()")
        assert ask(replace(writer_shop, allow_routines=True), "SELECT seven()").values == [(7,)]
        with pytest.raises(QueryFailed, match="pg_notify"):
            ask(replace(writer_shop, allow_routines=True), "SELECT pg_notify('x', 'y')")
        admin.execute("ALTER FUNCTION seven STABLE")
        assert ask(writer_shop, "SELECT seven()").values == [(7,)]


def test_the_attempts_would_work_without_the_guards(
    writer_shop: DatabaseTarget, postgres_url: str
) -> None:
    """The role has all these rights: only the session prevents the writes."""
    with psycopg.connect(writer_shop.url, autocommit=True) as open_session:
        for name in (
            "insert",
            "function",
            "cte-delete",
            "nextval",
            "call",
            "temp-table",
            "several",
        ):
            with open_session.transaction(force_rollback=True):
                open_session.execute(REFUSED[name])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders;", "TABLE orders", "VALUES (1), (2)", "SELECT 1 -- done",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3) TABLE n",
        "(SELECT 1) UNION (SELECT 2)", "SELECT 'a%b', '%s', ':x', $$DROP; $$",
        "SELECT 'DELETE FROM orders; COMMIT'",
    ],
)  # fmt: skip
def test_reading_statements_are_allowed(query: str, postgres_shop: DatabaseTarget) -> None:
    assert ask(postgres_shop, query).row_count > 0


POWERS = {
    "superuser": ("ALTER ROLE {role} SUPERUSER", "superuser"),
    "replication": ("ALTER ROLE {role} REPLICATION", "replicate"),
    "bypass": ("ALTER ROLE {role} BYPASSRLS", "row security"),
    "files": ("GRANT pg_read_server_files TO {role}", "pg_read_server_files"),
    "write": ("GRANT pg_write_server_files TO {role}", "pg_write_server_files"),
    "programs": ("GRANT pg_execute_server_program TO {role}", "pg_execute_server_program"),
    "dormant": ("ALTER ROLE {role} NOINHERIT; GRANT vel TO {role}", "superuser"),
    "function": ("GRANT EXECUTE ON FUNCTION pg_read_file(text) TO {role}", "pg_read_file"),
}


@pytest.mark.parametrize("name", POWERS)
def test_a_privileged_role_is_refused_unless_the_operator_allows_it(
    name: str, postgres_shop: DatabaseTarget, postgres_url: str
) -> None:
    grant, words = POWERS[name]
    with admin_of(postgres_shop, postgres_url) as admin:
        role = f"mighty_{admin.info.backend_pid}"
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'opensesame'")
        head, _, rest = postgres_shop.url.partition("@")
        target = DatabaseTarget("mighty", f"postgresql://{role}:opensesame@{rest}")
        assert head.startswith("postgresql://reader_")
        try:
            assert ask(target, "SELECT 1").values == [(1,)]
            admin.execute(grant.replace("{role}", role))
            # Also on the open connection.
            with pytest.raises(QueryFailed, match=words) as refused:
                ask(target, "SELECT 1")
            assert refused.value.code == "privileged"
            allowed = replace(target, allow_privileged=True)
            assert ask(allowed, "SELECT 1").values == [(1,)]
            with pytest.raises(QueryFailed):
                ask(allowed, "DELETE FROM orders")
        finally:
            admin.execute(f"DROP OWNED BY {role}")
            admin.execute(f"DROP ROLE {role}")


def test_dblink_is_refused_until_it_is_revoked(
    postgres_shop: DatabaseTarget, postgres_url: str
) -> None:
    with admin_of(postgres_shop, postgres_url) as admin:
        # The function of the extension, which a minimal server may not have.
        admin.execute(
            "CREATE FUNCTION dblink_exec(text, text) RETURNS text LANGUAGE sql AS $$ SELECT '' $$"
        )
        with pytest.raises(QueryFailed, match="dblink_exec") as refused:
            ask(postgres_shop, "SELECT 1")
        assert refused.value.code == "privileged"
        admin.execute("REVOKE EXECUTE ON FUNCTION dblink_exec(text, text) FROM PUBLIC")
        assert ask(postgres_shop, "SELECT 1").row_count == 1


def test_ending_other_sessions_of_the_role_changes_nothing_and_the_pool_recovers(
    postgres_shop: DatabaseTarget,
) -> None:
    ask(postgres_shop, "SELECT 1")
    with pytest.raises(QueryFailed):
        ask(postgres_shop, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert session(postgres_shop) == CLEAN


def test_vels_own_database_is_refused(postgres_shop: DatabaseTarget, postgres_url: str) -> None:
    with admin_of(postgres_shop, postgres_url) as admin:
        server = admin.execute("SELECT system_identifier::text FROM pg_control_system()").fetchone()
        number = admin.execute(
            "SELECT oid::bigint FROM pg_database WHERE datname = current_database()"
        ).fetchone()
        assert server is not None
        assert number is not None
        own = OwnDatabase(server=server[0], database=number[0])
        with pytest.raises(QueryFailed, match="own database"):
            ask(postgres_shop, "SELECT 1", own=own)
        beside = replace(own, database=own.database + 1)
        assert ask(postgres_shop, "SELECT 1", own=beside).row_count == 1
        elsewhere = replace(own, server="7")
        assert ask(postgres_shop, "SELECT 1", own=elsewhere).row_count == 1
        # A database whose identity cannot be read counts as Vel's own.
        admin.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        with pytest.raises(QueryFailed, match="own database"):
            ask(postgres_shop, "SELECT 1", own=elsewhere)
