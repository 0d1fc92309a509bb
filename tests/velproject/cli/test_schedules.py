"""`vel schedules`: whose are shown and started, and what is written of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner
from django.contrib.auth.models import Permission

from agents.models import Run, Schedule
from agents.services.errors import InvalidRequest
from tests.agents.api.rows import make_agent, make_user
from tests.agents.services.schedule_rows import fire_all, last, make_due, make_schedule
from velproject.cli import schedules as commands
from velproject.cli.commands.schedules import enable, list_schedules, next_time, run_now
from velproject.cli.errors import CliError
from velproject.cli.local_user import local_user
from velproject.cli.main import vel

pytestmark = pytest.mark.django_db
Output = pytest.CaptureFixture[str]


def test_the_list_is_of_ones_own(capsys: Output) -> None:
    me = local_user()
    me.user_permissions.add(
        Permission.objects.get(codename="view_schedule", content_type__app_label="agents")
    )
    list_schedules(as_json=False)
    assert "no schedules" in capsys.readouterr().err
    agent = make_agent()
    make_schedule(make_user("ada"), agent=agent, name="Of Ada")
    mine = make_schedule(me, agent=agent, time_zone="Asia/Tokyo")
    assert mine.due_at is not None
    mine.name = "Mine\u202e\x1b[2J"  # no service stores it
    Schedule.objects.filter(pk=mine.pk).update(name=mine.name)

    list_schedules(as_json=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {
        "id": mine.pk, "name": mine.name, "agent": "writer", "cron": "0 9 * * *",
        "interval_seconds": None, "time_zone": "Asia/Tokyo", "enabled": True,
        "due_at": mine.due_at.isoformat(),
    }  # fmt: skip
    list_schedules(as_json=False)
    table = capsys.readouterr().out
    assert mine.pk in table
    assert "Of Ada" not in table
    assert "\u202e" not in table
    assert "\x1b[2J" not in table


def test_one_is_paused_goes_on_and_is_run(capsys: Output) -> None:
    mine = make_schedule(local_user(), cron="", interval_seconds=3600)
    make_due(mine)

    enable(schedule_id=mine.pk[:-1], enabled=False)
    assert capsys.readouterr().out == f"{mine.pk}: paused\n"
    assert fire_all() == 0
    run_now(schedule_id=mine.pk.upper())
    run = Run.objects.get()
    assert capsys.readouterr().out == f"{run.pk}\n"
    assert (run.schedule, last(mine).reason) == (mine, "by_hand")
    enable(schedule_id=mine.pk, enabled=True)
    mine.refresh_from_db()
    assert capsys.readouterr().out == f"{mine.pk}: {mine.due_at:%Y-%m-%d %H:%M} UTC\n"


def test_nothing_of_others_is_started_or_stopped() -> None:
    """Not by an operator either: what is here is one's own."""
    me = local_user()
    right = Permission.objects.get(codename="change_schedule", content_type__app_label="agents")
    me.user_permissions.add(right)
    agent = make_agent()
    other = make_schedule(make_user("ada"), agent=agent)
    for name in (other.pk, "", "nothing"):
        with pytest.raises(CliError, match="no schedule"):
            run_now(schedule_id=name)
        with pytest.raises(CliError, match="no schedule"):
            enable(schedule_id=name, enabled=False)
    make_schedule(me, agent=agent)
    make_schedule(me, agent=agent)
    with pytest.raises(CliError, match="Several"):
        run_now(schedule_id=other.pk[:1])
    other.refresh_from_db()
    assert other.is_enabled
    assert not Run.objects.exists()


def test_what_became_unreadable_does_not_go_on() -> None:
    mine = make_schedule(local_user())
    Schedule.objects.update(time_zone="Asia/Nowhere", is_enabled=False)
    with pytest.raises(InvalidRequest, match="time_zone"):
        enable(schedule_id=mine.pk, enabled=True)
    assert not Schedule.objects.get().is_enabled


def test_the_next_time() -> None:
    due = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert next_time(Schedule(due_at=due)) == "2026-01-02 03:04 UTC"
    assert next_time(Schedule(due_at=None)) == "over"
    assert next_time(Schedule(due_at=due, is_enabled=False)) == "paused"


def test_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each of them asks for; that is done in a booted project."""
    asked: list[Any] = []

    def note(action: str, **given: Any) -> int:
        asked.append((action, given))
        return 0

    monkeypatch.setattr(commands, "perform", note)
    for words in ("list --json", "run 01ab", "pause 01ab", "go-on 01ab"):
        done = CliRunner().invoke(vel, ["schedules", *words.split()])
        assert done.exit_code == 0, done.output
    one = {"persist": None, "schedule_id": "01ab"}
    assert asked == [
        ("schedules:list_schedules", {"persist": None, "as_json": True}),
        ("schedules:run_now", one),
        ("schedules:enable", {**one, "enabled": False}),
        ("schedules:enable", {**one, "enabled": True}),
    ]
