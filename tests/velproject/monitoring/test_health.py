"""`/healthz`, `/readyz` and the status page: their content for each reader, and their cost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import F
from django.test import Client
from django.utils import timezone

from agents.features.operations.starting import remove_mark, write_mark
from agents.models import Machine, ProcessKind, Run, RunClock, ServerProcess
from agents.services.machines.processes import Reporter
from sandbox.linux.probe import check_host
from tests.support.runs import (
    drive_to_end,
    make_agent,
    make_user,
    running_worker,
    start_run,
    wait_until,
)
from velproject.monitoring import health, readiness, status_page
from velproject.monitoring.health import HealthFirst
from velproject.monitoring.readiness import Check, Readiness, look

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fresh = Readiness(keep=0.0)
    monkeypatch.setattr(health, "readiness", fresh)
    monkeypatch.setattr(status_page, "readiness", fresh)
    return


def worker_lives() -> None:
    Reporter(ProcessKind.WORKER, "here:1:ab", 32).report(driven=1)


def staff(name: str = "olga", *, permitted: bool = True) -> Client:
    user = make_user(name, is_staff=True)
    if permitted:
        user.user_permissions.add(Permission.objects.get(codename="view_serverprocess"))
    client = Client()
    assert client.login(username=name, password="analytical")
    return client


def test_strangers_get_only_yes_or_no() -> None:
    client = Client()
    assert client.get("/healthz").json() == {"status": "ok"}
    failing = client.get("/readyz")
    assert (failing.status_code, failing.json()) == (503, {"status": "failing"})
    worker_lives()
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ok"})
    assert "no-store" in ready["Cache-Control"]
    for path in ("/healthz", "/readyz"):
        assert client.post(path).status_code == 405
    visitor = staff("paula")
    User.objects.filter(username="paula").update(is_staff=False)
    assert visitor.get("/readyz").json() == {"status": "ok"}
    for name, permitted in (("peter", False), ("olga", True)):
        told = staff(name, permitted=permitted).get("/readyz").json()
        assert ("checks" in told) is permitted
    assert {each["name"] for each in told["checks"]} == {
        "database", "migrations", "disk", "sandbox", "workers",
    }  # fmt: skip


def test_each_check_can_fail(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> set[str]:
        return {each.name for each in look() if not each.ok}

    Reporter(ProcessKind.WEB, "here:2:cd").report()
    assert failing() == {"workers"}
    worker_lives()
    assert failing() == set()
    ServerProcess.objects.update(seen_at=F("seen_at") - 36)
    assert failing() == {"workers"}
    worker_lives()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'agents' AND name LIKE '0001%'")
    try:
        assert failing() == {"migrations", "workers"}
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES ('agents', %s, %s)",
                [first_migration(), timezone.now()],
            )
    usual = settings.VEL
    settings.VEL = {**usual, "RESERVE_BYTES": 10**18}
    assert failing() == {"disk"}
    settings.VEL = usual
    unfit = replace(check_host(), problems=(f"bwrap is away {KEY}",))
    monkeypatch.setattr(readiness, "check_host", lambda: unfit)
    assert failing() == {"sandbox"}
    assert KEY not in repr(look())
    monkeypatch.undo()
    settings.VEL = {**settings.VEL, "DATA_DIR": "/nonexistent/vel"}
    assert failing() == {"disk"}
    settings.VEL = {**settings.VEL, "DATA_DIR": f"/{KEY}\0"}  # an error that no check expects
    assert "look" in failing()


def test_a_connection_that_cannot_be_closed_changes_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker_lives()
    found = look()

    def broken() -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(connection, "close", broken)
    assert look() == found


@contextmanager
def applied(name: str) -> Iterator[None]:
    """Record a migration of another version as applied."""
    recorder = MigrationRecorder(connection)
    recorder.record_applied("agents", name)
    try:
        yield
    finally:
        recorder.record_unapplied("agents", name)


@contextmanager
def changed(there: str, back: str) -> Iterator[None]:
    """Change the tables, and change them back."""
    with connection.cursor() as cursor:
        cursor.execute(there)
    try:
        yield
    finally:
        with connection.cursor() as cursor:  # `look` has closed the earlier connection
            cursor.execute(back)


def not_ready() -> dict[str, str]:
    """Return the checks that fail, other than that of the workers."""
    found = {each.name: each.detail for each in look() if not each.ok}
    found.pop("workers", None)
    return found


def test_a_database_of_a_development_version_is_not_ready() -> None:
    with applied("0002_sandbox_options"):
        assert "development version before 0.1.0" in not_ready()["migrations"]


JOBS = "ALTER TABLE agents_backgroundjob"


@pytest.mark.both_databases
def test_a_process_stays_ready_after_the_additions_of_a_newer_version() -> None:
    worker_lives()
    with (
        applied("9999_tomorrow"),
        changed(f"{JOBS} ADD COLUMN note text", f"{JOBS} DROP COLUMN note"),
        changed(f"{JOBS} ADD COLUMN tries integer DEFAULT 0 NOT NULL", f"{JOBS} DROP COLUMN tries"),
        changed("CREATE TABLE agents_tomorrow (id integer)", "DROP TABLE agents_tomorrow"),
    ):
        assert [each for each in look() if not each.ok] == []
        (found,) = [each for each in look() if each.name == "migrations"]
    assert "prepared by a newer Vel (agents.9999_tomorrow)" in found.detail


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("there", "back", "problem"),
    [
        (
            f"{JOBS} RENAME COLUMN due_at TO next_at",
            f"{JOBS} RENAME COLUMN next_at TO due_at",
            "agents_backgroundjob.due_at is missing and 1 more",
        ),
        (
            f"{JOBS} RENAME TO agents_periodicjob",
            "ALTER TABLE agents_periodicjob RENAME TO agents_backgroundjob",
            "agents_backgroundjob is missing",
        ),
    ],
)
def test_a_process_whose_columns_a_newer_version_has_removed_is_not_ready(
    there: str, back: str, problem: str
) -> None:
    with applied("9999_tomorrow"), changed(there, back):
        assert not_ready() == {
            "migrations": f"prepared by a newer Vel (agents.9999_tomorrow): {problem}"
        }


@pytest.mark.both_databases
def test_a_process_whose_own_migrations_are_missing_is_not_ready() -> None:
    """The database is newer in one part, and older in another one."""
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("agents", first_migration())
    try:
        with applied("9999_tomorrow"):
            assert not_ready() == {"migrations": "1 to apply"}
    finally:
        recorder.record_applied("agents", first_migration())


@pytest.mark.both_databases
def test_a_database_that_was_moved_is_not_ready_until_it_is_reopened() -> None:
    worker_lives()
    write_mark(connection, "the SQLite database /srv/new.sqlite3")
    try:
        assert "was moved to the SQLite database /srv/new.sqlite3" in not_ready()["database"]
    finally:
        assert remove_mark() == "the SQLite database /srv/new.sqlite3"
    assert not_ready() == {}


@pytest.fixture
def away() -> Iterator[None]:
    """Make the database unavailable for all threads."""
    there = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = "/nonexistent/database"
    yield
    connection.close()
    connection.settings_dict["NAME"] = there


def test_without_its_database_it_is_alive_and_not_ready_for_everyone(
    request: pytest.FixtureRequest,
) -> None:
    worker_lives()
    operator = staff()
    assert operator.get("/readyz").status_code == 200
    request.getfixturevalue("away")
    for client in (Client(), operator):
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"status": "failing"})
        assert client.get("/healthz").status_code == 200
    assert {each.name for each in look() if not each.ok} == {"database", "workers"}


def first_migration() -> str:
    from pathlib import Path

    import agents

    assert agents.__file__ is not None
    return next((Path(agents.__file__).parent / "migrations").glob("0001_*.py")).stem


def test_many_concurrent_requests_cost_one_check() -> None:
    looks: list[int] = []
    go_on = threading.Event()
    begun = threading.Event()

    def slow() -> list[Check]:
        looks.append(1)
        if len(looks) > 1:
            begun.set()
            go_on.wait(20)
        return [Check("x", True)]

    asked = Readiness(slow, keep=0.0)
    asked.checks()
    first = threading.Thread(target=asked.checks)
    first.start()
    assert begun.wait(20)
    for _ in range(100):
        assert asked.checks() == [Check("x", True)]  # immediately, from the last check
    go_on.set()
    first.join()
    assert len(looks) == 2
    kept = Readiness(slow, keep=60.0)
    for _ in range(100):
        kept.checks()
    assert len(looks) == 3


def test_a_database_that_hangs_is_not_ready() -> None:
    hangs = threading.Event()

    def hanging() -> list[Check]:
        hangs.wait(20)
        return []

    checks = Readiness(hanging, patience=0.05).checks()
    hangs.set()
    assert [(each.name, each.ok) for each in checks] == [("look", False)]


def test_balancers_are_answered_before_django_and_by_any_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker_lives()

    async def django(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "django"})

    async def ask(path: str, *headers: tuple[bytes, bytes], method: str = "GET") -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "path": path, "method": method, "headers": list(headers)}
        await HealthFirst(django)(scope, None, send)
        return sent

    async def story() -> None:
        host = (b"host", b"10.0.0.7")
        start, body = await ask("/healthz", host)
        assert (start["status"], json.loads(body["body"])) == (200, {"status": "ok"})
        start, body = await ask("/readyz", host)
        assert (start["status"], json.loads(body["body"])) == (200, {"status": "ok"})
        assert (await ask("/readyz", host, method="HEAD"))[1]["body"] == b""
        monkeypatch.setattr(health, "readiness", Readiness(lambda: [Check("disk", False, KEY)]))
        start, body = await ask("/readyz", host)
        assert (start["status"], json.loads(body["body"])) == (503, {"status": "failing"})
        assert (await ask("/healthz", host))[0]["status"] == 200
        for others in (
            ask("/readyz", host, (b"cookie", b"sessionid=x")),
            ask("/healthz", host, method="POST"),
            ask("/", host),
            ask("/readyz/", host),
        ):
            assert await others == [{"type": "django"}]

    asyncio.run(story())


@pytest.mark.slow
def test_a_worker_reports_its_life_and_its_end() -> None:
    with running_worker() as running:
        row = wait_until(ServerProcess.objects.first)
        assert (row.name, row.kind, row.capacity) == (running.name, "worker", running.capacity)
        assert row.pid
        assert row.host
    assert not ServerProcess.objects.exists()


def test_the_status_page_is_for_those_with_the_permission_and_shows_no_key() -> None:
    user = make_user()
    make_agent(user, model="no-such-script")
    run = drive_to_end(start_run(user))
    Run.objects.filter(pk=run.pk).update(
        error_code="model_authentication", error_message=f"bad key {KEY}\u202e<script>"
    )
    worker_lives()
    driven = start_run(user)
    Run.objects.filter(pk=driven.pk).update(status="running")
    RunClock.objects.filter(run=driven).update(lease_until=9e12, lease_holder="cli<b>\u202e:2:cd")
    for client in (Client(), staff("peter", permitted=False)):
        answer = client.get("/admin/status/")
        assert answer.status_code in (302, 403)
        assert b"here" not in answer.content
    assert staff("carl").post("/admin/status/").status_code == 405
    for name, seen_ago, is_draining in (
        ("h-one", 0, False),
        ("h-two", 0, True),
        ("h-three", 99, 0),
    ):
        seen = timezone.now().timestamp() - seen_ago
        Machine.objects.create(name=name, joined_at=seen, seen_at=seen, is_draining=is_draining)
    page = staff().get("/admin/status/")
    assert page.status_code == 200
    hosts = {each["name"]: (each["state"], each["threads"]) for each in page.context["hosts"]}
    assert hosts == {"h-one": ("alive", 0), "h-two": ("drained", 0), "h-three": ("silent", 0)}
    text = page.content.decode()
    assert KEY not in text
    assert "bad key [secret withheld]" in text
    assert "authentication (1)" in text
    assert "\u202e" not in text
    assert "<script>" not in text.partition("bad key")[2][:200]
    assert "cli&lt;b&gt;⟨U+202E⟩:2:cd: 1" in text
    assert "1 of 32" in text
    assert "security.W" in text  # warnings of check --deploy without TLS
    assert Client().get("/admin/").status_code == 302
    assert "/admin/status/" not in staff("paula", permitted=False).get("/admin/").content.decode()
