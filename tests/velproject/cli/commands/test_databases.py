"""`vel TASK --database`, `vel databases` and `vel secrets`, as processes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.velproject.command import Vel, say

ECHO = ("--provider", "scripted", "--model", "echo")
NEW_KEY = "a new key of many letters 0123456789"


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """Return the URL of a real file outside Vel's data directory."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE sales (amount)")
        database.execute("INSERT INTO sales VALUES (4200), (42)")
    return f"sqlite:///{tmp_path}/shop.db"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("postgresql://u:hunter2@h/n?sslmode=require", "expected NAME=URL"),
        ("my shop=postgresql://u:hunter2@h/n", "expected NAME=URL"),
        ("shop=hunter2", "expected a URL"),
        ("shop=env:NOT_THERE", "environment variable NOT_THERE is not set"),
        ("shop=env:hunter2/@h", "the environment variable is not set"),
        ("shop=postgresql://u:hunter2@h/n?options=-c%20x", "parameters"),
        ("shop=sqlite:////{data}/vel.sqlite3", "Vel's own"),
    ],
)
def test_invalid_values_end_with_2_and_show_no_password(vel: Vel, value: str, says: str):
    value = value.format(data=str(vel.data).lstrip("/"))
    done = vel(*ECHO, "--database", value, "--debug", "task")
    assert done.returncode == 2
    assert says in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert vel.count("agents_run") == vel.count("vel_databases_databaseconnection") == 0


def test_it_is_refused_where_it_does_not_apply(vel: Vel, shop: str):
    done = vel("--agent", "demo", "--database", f"shop={shop}", "task")
    assert (done.returncode, "--database cannot be combined with" in done.stderr) == (2, True)
    done = vel(*ECHO, "--database", f"shop={shop}", "--database", f"shop={shop}", "task")
    assert (done.returncode, "given twice" in done.stderr) == (2, True)


@pytest.mark.slow
def test_a_task_has_the_database_encrypted_and_pinned_by_name(vel: Vel, tmp_path: Path, shop: str):
    # The path is relative to the current directory. The environment adds a second database.
    url = "postgresql://reader:hunter2@127.0.0.1:9/shop"
    done = vel(
        *ECHO,
        *("--database", "shop=sqlite:///shop.db", "--database", "stock=env:STOCK_URL"),
        *("--json", "task"),
        cwd=tmp_path,
        STOCK_URL=url,
        VEL_LOG_LEVEL="DEBUG",
    )
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    spec = str(vel.value("SELECT spec FROM agents_agentversion ORDER BY number DESC LIMIT 1"))
    assert '"databases": ["shop", "stock"]' in spec
    for table in ("agents_agentversion", "agents_runevent", "agents_message", "agents_epoch"):
        assert "hunter2" not in str(dump(vel, table))
    assert "hunter2" not in str(dump(vel, "vel_databases_databaseconnection"))

    listed = {row["name"]: row for row in vel.rows("databases", "list")}
    assert listed["shop"]["address"] == f"sqlite {tmp_path.resolve()}/shop.db"
    assert listed["stock"]["address"] == "postgresql reader@127.0.0.1:9/shop"
    assert all(row["own"] and len(row["agents"]) == 1 for row in listed.values())
    assert "hunter2" not in vel("databases", "list").stdout


@pytest.mark.slow
def test_the_agent_reads_it(vel: Vel, shop: str):
    script = vel.script(say("", ("execute_sql", {"query": "SELECT sum(amount) FROM sales"})))
    done = vel(*script, "--database", f"shop={shop}", "--json", "task")
    assert done.returncode == 0, done.stderr
    assert "4242" in str(dump(vel, "agents_toolcall"))


def dump(vel: Vel, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(vel.data / "vel.sqlite3")) as database:
        return database.execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.slow
def test_the_next_task_has_it_only_when_it_is_given_again(vel: Vel, shop: str):
    latest = "SELECT spec FROM agents_agentversion ORDER BY number DESC LIMIT 1"
    assert vel(*ECHO, "task").returncode == 0
    before = vel.value(latest)
    assert "databases" not in str(before)
    assert vel(*ECHO, "--database", f"shop={shop}", "task").returncode == 0
    assert '"databases": ["shop"]' in str(vel.value(latest))
    assert vel(*ECHO, "task").returncode == 0
    assert vel.value(latest) == before


@pytest.mark.slow
def test_a_run_that_waits_keeps_its_database_and_its_name(vel: Vel, tmp_path: Path, shop: str):
    script = vel.script(say("", ("ls", {})), say("Done."))
    given = ("--database", f"shop={shop}")
    assert vel(*script, *given, "--approve", "ls", "task").returncode == 3
    other = tmp_path / "other.db"
    other.touch()
    done = vel(*ECHO, "--database", f"shop=sqlite:///{other}", "task")
    assert (done.returncode, "uses another database as shop" in done.stderr) == (2, True)
    assert vel(*ECHO, *given, "task").returncode == 0


@pytest.mark.slow
def test_ones_own_can_be_removed_and_others_cannot(vel: Vel, shop: str):
    assert vel(*ECHO, "--database", f"shop={shop}", "task").returncode == 0
    assert vel("databases", "remove", "stock").returncode == 2
    assert "is removed" in vel("databases", "remove", "shop").stdout
    assert vel.count("vel_databases_databaseconnection") == 0


@pytest.mark.slow
def test_rotation_with_real_keys(vel: Vel, shop: str):
    assert vel(*ECHO, "--database", f"shop={shop}", "task").returncode == 0
    old = (vel.data / "secret_key").read_text().strip()

    done = vel("secrets", "rotate", VEL_SECRET_KEYS=f"{NEW_KEY},{old}")
    assert (done.returncode, done.stdout) == (0, "Encrypted with the first key: 1.\n")
    lost = vel("secrets", "rotate")  # with only the key in the data directory
    assert lost.returncode == 1
    assert "shop cannot be decrypted" in lost.stderr
    listed = vel("databases", "list", "--json", VEL_SECRET_KEYS=NEW_KEY).stdout
    assert shop.removeprefix("sqlite:///") in listed
