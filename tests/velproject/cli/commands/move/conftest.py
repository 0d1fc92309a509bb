"""A database with rows of all parts of Vel, from real runs of the offline model."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.support.migrated import copy_postgres, copy_sqlite
from tests.support.shared import alone, shared_directory
from tests.support.site import Site, migrated_site
from tests.velproject.cli.commands.move.databases import Old
from tests.velproject.cli.commands.runs.test_subagents import team
from tests.velproject.command import Vel, new_vel, say

PASSWORD = "a-long-enough-password"
LOOK = ("ls", {"path": "/"})
WRITE = ("write_file", {"path": "/note.txt", "content": "Grüße 🌱\n"})


@pytest.fixture(scope="session")
def template() -> Old:
    """Return a filled installation. One process fills it for all: tests change copies of it."""
    return filled()


def filled() -> Old:
    place = shared_directory() / "moved"
    with alone("moved"):
        if not place.exists():
            _fill(place)
    known = json.loads((place / "template.json").read_text())
    return Old(Vel(place, environment_of(place)), known["parked"], known["ended"])


def _fill(place: Path) -> None:
    # The accounts of sandboxes must reach it, so it is not in the shared directory.
    directory = Path(tempfile.mkdtemp(prefix="vel-move-", dir="/var/tmp"))
    directory.chmod(0o711)
    try:
        site = migrated_site(directory)
        try:
            _rows_of_people(site)
        finally:
            site.close()
        filled = _runs(directory)
        known = {"parked": filled.parked, "ended": filled.ended}
        (directory / "template.json").write_text(json.dumps(known))
        copy = place.with_suffix(".new")
        shutil.rmtree(copy, ignore_errors=True)  # left by a killed process
        shutil.copytree(directory, copy)
        copy.rename(place)
    finally:
        shutil.rmtree(directory)


@pytest.fixture
def old(template: Old) -> Iterator[Old]:
    with new_vel() as vel:
        shutil.rmtree(vel.data)
        shutil.copytree(template.vel.data, vel.data)
        yield Old(Vel(vel.data, environment_of(vel.data)), template.parked, template.ended)


def environment_of(directory: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": f"sqlite:///{directory}/site.sqlite3",
        "VEL_SECRET_KEY": "not-a-secret-only-for-tests",
        "VEL_SCRIPTS_DIR": "/",
    }


def _rows_of_people(site: Site) -> None:
    site.do("make_user", name="olga", password=PASSWORD, admin=True)
    site.do("make_user", name="ada", approver=True)
    site.do("sign_in", user="olga")
    site.do("make_token", user="olga", scopes=["read"])
    run = site.do("make_run", owner="olga", message="Ünïcode 🌱 and 'quotes'\\\t\n")
    site.do("ask", run=run, tool="send_mail", tool_input={"to": "ä@example.org", "n": 1e300})
    other = site.do("make_run", owner="olga")
    site.do("allow", user="ada", permissions=["edit_memory", "import_skill", "change_agent"])
    site.do("make_schedule", owner="olga")
    site.do("make_inbound_webhook", owner="olga")
    site.do("bring_skill", by="olga")
    site.do("remember", path="knowledge/plan.md", content="A plan.", by="olga")
    site.do("ask_memory", run=other, path="knowledge/facts.md", content="A fact.")
    child = site.do("make_child", parent=run)
    site.do("park", run=run, children=[child])


def _runs(directory: Path) -> Old:
    """Let the command run agents with subagents and files. One run waits for an approval."""
    vel = Vel(directory, environment_of(directory))
    flags = team(
        vel,
        [say("I delegate.", ("parallel_tasks", {"tasks": TASKS})), say("All done.")],
        finder=[say("", LOOK), say("Found it.")],
    )
    done = vel(*flags, "--json", "go")
    assert done.returncode == 0, done.stderr
    # The run continues in copies of the directory, so its script is in a place that stays.
    script = shared_directory() / "parked.json"
    script.write_text(json.dumps({"turns": [say("Looking.", LOOK, WRITE), say("Done.")]}))
    flags = ["--provider", "scripted", "--model", f"file:{script}"]
    waits = vel("--no-sandbox", *flags, "--approve", "write_file", "look")
    assert waits.returncode == 3, waits.stderr
    (request,) = vel.rows("approvals", "list")
    ended = next(row["id"] for row in vel.rows("runs", "list") if row["status"] == "completed")
    return Old(vel, request["id"], ended)


TASKS = [{"subagent": "finder", "task": f"Task {number}"} for number in range(2)]


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """Return a SQLite file with all tables and no rows: a move need not create them."""
    file = tmp_path / "fresh.sqlite3"
    copy_sqlite(file)
    return file


@pytest.fixture(scope="module")
def untouched(postgres_url: str) -> Iterator[str]:
    """Return a database with all tables, for tests whose moves all fail."""
    name = f"vel_untouched_{secrets.token_hex(4)}"
    copy_postgres(postgres_url, name)
    yield postgres_url.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def other_url(postgres_url: str) -> Iterator[str]:
    """Create a second database and remove it afterwards."""
    name = f"vel_other_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield postgres_url.replace("/postgres?", f"/{name}?")
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def role(postgres_url: str, database_url: str) -> Iterator[str]:
    """Return the URL of a role that can connect to the database, and can create nothing."""
    name = f"reader_{urlsplit(database_url).path.strip('/')}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE ROLE {name} LOGIN")
        yield database_url.replace("//vel@", f"//{name}@")
        with psycopg.connect(database_url, autocommit=True) as database:
            database.execute(f"DROP OWNED BY {name}")
        server.execute(f"DROP ROLE {name}")
