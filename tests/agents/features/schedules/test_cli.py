"""`vel schedules`: only the user's own schedules are listed and started; the output is safe."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission

from agents.doors.cli.errors import CliError
from agents.doors.cli.local_user import local_user
from agents.features.schedules.cli import next_time
from agents.features.schedules.models import Schedule
from agents.models import Run
from agents.services.errors import InvalidRequest
from tests.agents.api.rows import make_agent, make_user
from tests.agents.features.schedules.rows import fire_all, last, make_due, make_schedule
from tests.velproject.in_process import call

pytestmark = pytest.mark.django_db
Output = pytest.CaptureFixture[str]


def test_the_list_is_of_ones_own(capsys: Output) -> None:
    me = local_user()
    me.user_permissions.add(
        Permission.objects.get(codename="view_schedule", content_type__app_label="vel_schedules")
    )
    call("schedules", "list")
    assert "no schedules" in capsys.readouterr().err
    agent = make_agent()
    make_schedule(make_user("ada"), agent=agent, name="Of Ada")
    mine = make_schedule(me, agent=agent, time_zone="Asia/Tokyo")
    assert mine.due_at is not None
    mine.name = "Mine\u202e\x1b[2J"  # no service stores this
    Schedule.objects.filter(pk=mine.pk).update(name=mine.name)

    call("schedules", "list", "--json")
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {
        "id": mine.pk, "name": mine.name, "agent": "writer", "cron": "0 9 * * *",
        "interval_seconds": None, "time_zone": "Asia/Tokyo", "enabled": True,
        "due_at": mine.due_at.isoformat(),
    }  # fmt: skip
    call("schedules", "list")
    table = capsys.readouterr().out
    assert mine.pk in table
    assert "Of Ada" not in table
    assert "\u202e" not in table
    assert "\x1b[2J" not in table


def test_a_schedule_is_paused_resumed_and_run(capsys: Output) -> None:
    mine = make_schedule(local_user(), cron="", interval_seconds=3600)
    make_due(mine)

    call("schedules", "pause", mine.pk[:-1])
    assert capsys.readouterr().out == f"{mine.pk}: paused\n"
    assert fire_all() == 0
    call("schedules", "run", mine.pk.upper())
    run = Run.objects.get()
    assert capsys.readouterr().out == f"{run.pk}\n"
    assert (run.trigger, last(mine).reason) == (mine.pk, "by_hand")
    call("schedules", "resume", mine.pk)
    mine.refresh_from_db()
    assert capsys.readouterr().out == f"{mine.pk}: {mine.due_at:%Y-%m-%d %H:%M} UTC\n"


def test_schedules_of_others_are_not_started_or_stopped() -> None:
    """Even an operator can use only their own schedules here."""
    me = local_user()
    right = Permission.objects.get(
        codename="change_schedule", content_type__app_label="vel_schedules"
    )
    me.user_permissions.add(right)
    agent = make_agent()
    other = make_schedule(make_user("ada"), agent=agent)
    for name in (other.pk, "", "nothing"):
        with pytest.raises(CliError, match="no schedule"):
            call("schedules", "run", name)
        with pytest.raises(CliError, match="no schedule"):
            call("schedules", "pause", name)
    make_schedule(me, agent=agent)
    make_schedule(me, agent=agent)
    with pytest.raises(CliError, match="Several"):
        call("schedules", "run", other.pk[:1])
    other.refresh_from_db()
    assert other.is_enabled
    assert not Run.objects.exists()


def test_an_invalid_schedule_is_not_resumed() -> None:
    mine = make_schedule(local_user())
    Schedule.objects.update(time_zone="Asia/Nowhere", is_enabled=False)
    with pytest.raises(InvalidRequest, match="time_zone"):
        call("schedules", "resume", mine.pk)
    assert not Schedule.objects.get().is_enabled


def test_the_next_time() -> None:
    due = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert next_time(Schedule(due_at=due)) == "2026-01-02 03:04 UTC"
    assert next_time(Schedule(due_at=None)) == "over"
    assert next_time(Schedule(due_at=due, is_enabled=False)) == "paused"
