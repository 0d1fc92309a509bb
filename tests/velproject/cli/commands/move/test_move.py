"""`vel database move` to PostgreSQL and back, with rows of real runs."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from agents.doors.cli.local_user import account_name
from agents.features.operations.starting import TABLE
from tests.support.hang import HANG
from tests.support.site import Site
from tests.velproject.cli.commands.move.databases import WHOLE, Old, asked, dump, tables_of
from tests.velproject.command import say

pytestmark = pytest.mark.postgresql


def test_a_parked_run_continues_on_postgresql_and_its_events_stay_complete(
    old: Old, database_url: str
) -> None:
    before = old.dump()
    whole = old.rows(WHOLE)
    done = old.move(database_url)
    assert done.returncode == 0, done.stderr
    assert f"Vel does not start on the SQLite database {old.file} any more" in done.stdout
    assert [each for each in old.dump() if TABLE not in each] == before
    assert asked(database_url, WHOLE) == whole
    assert len(whole) > 5
    assert all(count == last == seq and first == 1 for _, seq, count, first, last in whole)

    vel = old.vel
    vel.environment["DATABASE_URL"] = database_url
    (request,) = vel.rows("approvals", "list")
    assert request["id"] == old.parked
    assert vel("approvals", "decide", old.parked, "approve").returncode == 0
    resumed = vel("runs", "resume", request["run"])
    assert (resumed.returncode, resumed.stdout) == (0, "Done.\n"), resumed.stderr
    whole = asked(database_url, WHOLE)
    assert all(count == last == seq and first == 1 for _, seq, count, first, last in whole)


@pytest.mark.slow
def test_each_table_has_the_same_rows_there_and_after_the_way_back(
    old: Old, prepared: str, tmp_path: Path
) -> None:
    there = old.vel("database", "move", "--to", prepared, "--json")
    assert there.returncode == 0, there.stderr
    old.vel.environment["DATABASE_URL"] = prepared
    file = tmp_path / "back.sqlite3"
    back = old.vel("database", "move", "--to", f"sqlite:///{file}", "--json")
    assert back.returncode == 0, back.stderr
    contents = json.loads(there.stdout)["contents"]
    assert json.loads(back.stdout)["contents"] == contents
    filled = {name for name, content in contents.items() if content["rows"]}
    assert {
        *("agents_runevent", "agents_toolcall", "agents_approvalrequest", "memory_memoryrevision"),
        *("skills_app_skillblob", "vel_schedules_schedule", "vel_subagents_subagent"),
        *("vel_inbound_webhooks_inboundwebhook", "agents_apitoken", "django_session"),
    } <= filled
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["back.sqlite3"]
    assert ordered(dump(str(file))) == ordered(old.dump())


def ordered(statements: list[str]) -> list[str]:
    """Return the rows, without values that PostgreSQL writes in another form: JSON and decimals."""
    kept = ("agents_runevent", "agents_message", "agents_toolcall", "agents_runclock", "auth_user")
    starts = tuple(f'INSERT INTO "{name}"' for name in kept)
    return sorted(each for each in statements if each.startswith(starts))


@pytest.mark.slow
def test_new_rows_get_new_numbers_after_both_moves(
    old: Old, database_url: str, tmp_path: Path
) -> None:
    # The number of a deleted row is not used again.
    old.change("UPDATE sqlite_sequence SET seq = 7000 WHERE name = 'memory_memoryfile'")
    assert old.move(database_url).returncode == 0
    sequence = "SELECT nextval(pg_get_serial_sequence('memory_memoryfile', 'id'))"
    assert asked(database_url, sequence) == [(7001,)]
    highest = old.rows("SELECT max(id) FROM agents_message")[0][0]
    sequence = "SELECT nextval(pg_get_serial_sequence('agents_message', 'id'))"
    assert asked(database_url, sequence) == [(highest + 1,)]
    old.vel.environment["DATABASE_URL"] = database_url
    file = tmp_path / "back.sqlite3"
    assert old.move(f"sqlite:///{file}").returncode == 0
    old.vel.environment["DATABASE_URL"] = f"sqlite:///{file}"
    flags = old.vel.script(say("Hello."), name="hello.json")
    assert old.vel("--no-sandbox", *flags, "hi").stdout == "Hello.\n"
    counters = dict(Old(old.vel, "", "").rows("SELECT name, seq FROM sqlite_sequence"))
    assert counters["memory_memoryfile"] == 7000


@pytest.mark.slow
def test_a_target_with_fresh_tables_is_accepted(old: Old, prepared: str) -> None:
    assert asked(prepared, "SELECT count(*) FROM auth_permission") != [(0,)]
    done = old.move(prepared)
    assert done.returncode == 0, done.stderr
    users = "SELECT username FROM auth_user ORDER BY id"
    assert asked(prepared, users) == old.rows(users)


@pytest.mark.slow
def test_a_fresh_sqlite_file_is_accepted(old: Old, tmp_path: Path) -> None:
    file = tmp_path / "new.sqlite3"
    assert old.vel("migrate", DATABASE_URL=f"sqlite:///{file}").returncode == 0
    done = old.move(f"sqlite:///{file}")
    assert done.returncode == 0, done.stderr
    assert ordered(dump(str(file))) == ordered(old.dump())


@pytest.mark.slow
def test_the_search_for_skills_works_after_the_moves(
    old: Old, database_url: str, tmp_path: Path
) -> None:
    found = "SELECT skill_id FROM skills_app_skillindexentry ORDER BY skill_id"
    assert old.move(database_url).returncode == 0
    lexemes = f"{found.replace(' ORDER', ' WHERE lexemes IS NOT NULL ORDER')}"
    assert asked(database_url, lexemes) == old.rows(found) != []
    old.vel.environment["DATABASE_URL"] = database_url
    file = tmp_path / "back.sqlite3"
    assert old.move(f"sqlite:///{file}").returncode == 0
    assert "skills_app_skillindex_fts" in "".join(dump(str(file)))


@pytest.mark.slow
def test_a_move_that_fails_late_leaves_an_empty_target(old: Old, database_url: str) -> None:
    # SQLite does not check the reference, because another program wrote it.
    old.change(
        "UPDATE agents_message SET run_id = 'gone' WHERE id = (SELECT max(id) FROM agents_message)"
    )
    line = old.refused(database_url)
    assert "refers to a row that does not exist" in line
    assert "agents_message" in line
    assert tables_of(database_url) == []


@pytest.mark.slow
def test_a_watcher_on_the_new_database_gets_all_events(
    old: Old, database_url: str, tmp_path: Path
) -> None:
    events = "SELECT seq, type FROM agents_runevent WHERE run_id = '{}' ORDER BY seq"
    before = old.rows(events.format(old.ended))
    assert old.move(database_url).returncode == 0
    site = Site(old.vel.data, database_url)
    try:
        token = site.do("make_token", user=account_name(), scopes=["read"])
        site.start_server()
        request = Request(
            f"{site.url}/api/v1/runs/{old.ended}/events/stream?after=0",
            headers={"Authorization": f"Bearer {token}", "Accept": "text/event-stream"},
        )
        with urlopen(request, timeout=HANG) as stream:
            found = [line.decode() for line in stream if line.startswith(b"id:")]
    finally:
        site.close()
    assert [int(line.removeprefix("id:")) for line in found] == [seq for seq, _ in before]
    assert [seq for seq, _ in before] == list(range(1, len(before) + 1))
