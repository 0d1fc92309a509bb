"""Statements that try to exhaust memory, time and locks are stopped; the worker continues."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from agents.features.databases.drivers import pools
from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.errors import OutcomeUnknown, QueryFailed
from agents.features.databases.drivers.helper.client import _pool_of, ask_to_write
from agents.features.databases.drivers.process_limits import MEMORY_BYTES
from agents.features.databases.drivers.sqlite import write as write_sqlite
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.write import try_sql
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.mariadb_shop import target_of
from tests.agents.features.databases.drivers.shop import NOBODYS, ask
from tests.support.hang import HANG
from tests.support.mariadb import MariaDB
from tests.support.runs import wait_until

MB = 1024**2
SECONDS = 1.0
SLOW = "instr(hex(zeroblob(499000)), hex(zeroblob(249000)) || '1')"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "

SQLITE = {
    "one call that takes half a minute": "SELECT printf('%.*c', 2000000000, 'x')",
    "calls that take minutes": f"SELECT {' + '.join([SLOW] * 8)}",
    "a row of a thousand long values": f"SELECT {', '.join(['hex(zeroblob(499000))'] * 900)} "
    "FROM sqlite_master a, sqlite_master b, sqlite_master c, sqlite_master d, sqlite_master e",
    "a sort that never ends": f"{ENDLESS}SELECT hex(randomblob(99000)) FROM n ORDER BY 1",
    "a count that never ends": f"{ENDLESS}SELECT count(*) FROM n",
}
DUCKDB = {
    "a value of several gigabytes": "SELECT length(repeat('x', 1900000000) || "
    "repeat('y', 1900000000))",
    "a value that is fetched": "SELECT repeat('x', 900000000)",
    "a row of long values": f"SELECT {', '.join(['repeat(chr(120), 100000000)'] * 40)}",
    "a list": "SELECT list(range) FROM range(4000000000)",
    "a product": "SELECT count(*) FROM range(100000000000) a, range(100000) b "
    "WHERE a.range % 7 = b.range % 5",
}


@pytest.fixture
def duckdb_shop(tmp_path: Path) -> DatabaseTarget:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE orders AS SELECT 10 AS id")
    return DatabaseTarget("duck", f"duckdb:///{tmp_path}/shop.duckdb")


@contextmanager
def modest() -> Iterator[None]:
    """Check that no helper exceeds its memory limit, and that this process uses little memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    pools.close_idle(older_than=0)
    subprocess.run(["true"], check=True)  # this also reaps killed helpers
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < MEMORY_BYTES + 200 * MB


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", SQLITE)
def test_sqlite_is_stopped(name: str, sqlite_shop: DatabaseTarget) -> None:
    with modest(), pytest.raises(QueryFailed) as stopped:
        ask(replace(sqlite_shop, statement_seconds=SECONDS), SQLITE[name])
    assert stopped.value.code in ("timeout", "memory")
    assert ask(sqlite_shop, "SELECT count(*) FROM orders").values == [(3,)]


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", DUCKDB)
def test_duckdb_is_stopped(name: str, duckdb_shop: DatabaseTarget) -> None:
    with modest(), pytest.raises(QueryFailed, match=r"(?i)stopped|memory"):
        ask(replace(duckdb_shop, statement_seconds=SECONDS), DUCKDB[name])
    assert ask(duckdb_shop, "SELECT id FROM orders").values == [(10,)]


@pytest.mark.postgresql
def test_a_huge_value_of_postgresql_is_not_read(postgres_shop: DatabaseTarget) -> None:
    limited = replace(postgres_shop, statement_seconds=5)
    with modest(), pytest.raises(QueryFailed) as refused:
        ask(limited, "SELECT repeat('x', 1000000000)")
    # A busy server is stopped by time first.
    assert refused.value.code in ("memory", "timeout")
    assert ask(postgres_shop, "SELECT count(*) FROM orders").values == [(3,)]


@pytest.mark.mariadb
def test_a_huge_row_of_mysql_is_not_read(mariadb: MariaDB) -> None:
    shop = target_of(mariadb, "reader")
    helper = helper_of(shop)
    assert resource.prlimit(helper, resource.RLIMIT_DATA) == (MEMORY_BYTES, MEMORY_BYTES)
    # The server needs twice the size of the row, so the row and the limit are small here.
    resource.prlimit(helper, resource.RLIMIT_DATA, (256 * MB, 256 * MB))
    columns = ", ".join(["REPEAT('x', 16000000)"] * 20)
    with modest(), pytest.raises(QueryFailed, match="memory"):
        ask(shop, f"SELECT {columns}")
    assert ask(shop, "SELECT count(*) FROM orders").values == [(3,)]


def is_gone(pid: int) -> bool:
    """Return whether the process has ended, or is a zombie."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def helper_of(target: DatabaseTarget) -> int:
    """Return the id of the helper process that the target's next statement uses."""
    ask(target, "SELECT 1")
    with _pool_of(target).connection(HANG, Cancellation()) as helper:
        return helper.pid


def works(pid: int) -> bool:
    """Return whether the process has used processor time for a statement."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK") > 0.5


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_cancelled_call_ends_immediately_in_any_library(
    kind: str, request: pytest.FixtureRequest
) -> None:
    target: DatabaseTarget = request.getfixturevalue(f"{kind}_shop")
    target = replace(target, statement_seconds=10 * HANG)
    query = (
        SQLITE["calls that take minutes"] if kind == "sqlite" else DUCKDB["a product"]
    )  # fmt: skip
    pid, cancel = helper_of(target), Cancellation()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(ask, target, query, cancel=cancel)
        wait_until(lambda: works(pid))
        cancel.cancel()
        with pytest.raises(QueryFailed, match="cancelled"):
            running.result(timeout=HANG)
    wait_until(lambda: is_gone(pid))


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_trial_does_not_block_writers(
    mode: str, sqlite_shop: DatabaseTarget, tmp_path: Path
) -> None:
    target = replace(sqlite_shop, statement_seconds=10 * HANG, allow_writes=True)
    with closing(sqlite3.connect(tmp_path / "shop.sqlite3", timeout=HANG)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        cancel = Cancellation()
        pid = helper_of(target)
        with ThreadPoolExecutor(1) as threads:
            endless = f"{ENDLESS}INSERT INTO orders SELECT x, 1, 1 FROM n WHERE x < 0"
            trial = threads.submit(try_sql, target, endless, None, NOBODYS, cancel)
            wait_until(lambda: works(pid))
            with other:
                other.execute("DELETE FROM orders WHERE id = 10")
            assert not trial.done()
            cancel.cancel()
            with pytest.raises(QueryFailed, match="cancelled"):
                trial.result(timeout=HANG)
    assert ask(sqlite_shop, "SELECT count(*) FROM orders").values == [(2,)]


def test_a_helper_that_dies_before_it_commits_leaves_the_outcome_unknown(
    sqlite_shop: DatabaseTarget,
) -> None:
    pid = helper_of(sqlite_shop)

    def keep(changes: Changes) -> bool:
        assert changes.row_count == 1
        os.kill(pid, signal.SIGKILL)
        return True

    query = "DELETE FROM orders WHERE id = 10"
    with pytest.raises(OutcomeUnknown, match="COMMIT"):
        ask_to_write(sqlite_shop, NOBODYS, Cancellation(), query, {}, keep)
    assert ask(sqlite_shop, "SELECT count(*) FROM orders").values == [(3,)]


def test_a_large_database_is_not_copied_for_a_trial(
    sqlite_shop: DatabaseTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "DELETE FROM orders WHERE id = 10"
    assert write_sqlite.try_sqlite(sqlite_shop, query, {}, NOBODYS).row_count == 1
    with monkeypatch.context() as patch:
        patch.setattr(write_sqlite, "COPIED_BYTES", 1000)
        with pytest.raises(QueryFailed, match="a copy of at most 1,000 bytes"):
            write_sqlite.try_sqlite(sqlite_shop, query, {}, NOBODYS)
    monkeypatch.setattr(write_sqlite, "_SPARE", 1 << 60)
    with pytest.raises(QueryFailed, match="too little room"):
        write_sqlite.try_sqlite(sqlite_shop, query, {}, NOBODYS)


WORKER = """
import json, os, signal, sys
from agents.features.databases.drivers.helper.client import _pool_of
from agents.features.databases.drivers.write import execute_sql
from agents.features.databases.drivers.helper.process import Helper
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation
given = json.loads(sys.argv[1])
target = DatabaseTarget("shop", given["url"], statement_seconds=given["seconds"])
execute_sql(target, "SELECT 1", None, OwnDatabase(), Cancellation())
with _pool_of(target).connection(9, Cancellation()) as helper:
    pid = helper.pid
print(pid, flush=True)
if given.get("freezes"):
    # When the helper has got its statement.
    Helper.receive = lambda *arguments: os.kill(os.getpid(), signal.SIGSTOP)
execute_sql(target, given["query"], None, OwnDatabase(), Cancellation())
"""


@contextmanager
def worker(**given: Any) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a process that runs a statement in a helper; yield it with the helper's process id."""
    command = [sys.executable, "-c", WORKER, json.dumps(given)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def test_a_helper_serves_a_stopping_worker(sqlite_shop: DatabaseTarget) -> None:
    pid = helper_of(sqlite_shop)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)
    assert helper_of(sqlite_shop) == pid


def test_a_helper_has_limits_and_no_secrets(
    sqlite_shop: DatabaseTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEL_SECRET_KEY", "opensesame")
    process = Path(f"/proc/{helper_of(sqlite_shop)}")
    limits = (process / "limits").read_text()
    assert re.search(rf"Max data size +{MEMORY_BYTES} +{MEMORY_BYTES} ", limits)
    assert re.search(r"Max core file size +0 +0 ", limits)
    assert b"opensesame" not in (process / "environ").read_bytes()
    opened = {os.readlink(link).partition(":")[0] for link in (process / "fd").iterdir()}
    assert opened == {"pipe", "/dev/null"}


def test_a_helper_dies_with_its_worker(sqlite_shop: DatabaseTarget) -> None:
    query = SQLITE["calls that take minutes"]
    with worker(url=sqlite_shop.url, query=query, seconds=10 * HANG) as (process, pid):
        wait_until(lambda: works(pid))
        process.kill()
        wait_until(lambda: is_gone(pid))


@pytest.mark.slow
def test_a_helper_ends_although_its_worker_is_frozen(sqlite_shop: DatabaseTarget) -> None:
    query = SQLITE["calls that take minutes"]
    with worker(url=sqlite_shop.url, query=query, seconds=1, freezes=True) as (_, pid):
        wait_until(lambda: is_gone(pid))
