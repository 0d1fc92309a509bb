"""Two real clusters on one database, and schedules that are all due at the same time."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import Count
from django.utils import timezone

from agents.features.schedules.actions import save_schedule
from agents.features.schedules.models import Schedule, ScheduleFiring
from agents.models import Run
from agents.states import ENDED_RUNS
from tests.support.cluster import Cluster
from tests.support.runs import make_agent, make_user, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedules", "rounds"),
    [
        pytest.param(12, 2, id="test"),
        pytest.param(40, 3, marks=pytest.mark.storm, id="storm"),
    ],
)
def test_each_time_is_one_run(tmp_path: Path, schedules: int, rounds: int) -> None:
    owner = make_user("ada")
    agent = make_agent(owner)
    for number in range(schedules):
        row = Schedule(
            owner=owner, agent=agent, name=f"S{number}", message="Hello", interval_seconds=3600
        )
        save_schedule(row, by=owner)
    directories = [tmp_path / name for name in ("one", "two")]
    for directory in directories:
        directory.mkdir()
    with Cluster(directories[0], workers=2), Cluster(directories[1], workers=2):
        begun = timezone.now().replace(microsecond=0)
        for number in range(1, rounds + 1):
            due = begun - timedelta(seconds=number)  # each round has another time
            Schedule.objects.update(due_at=due, next_at=due)
            wait_until(
                lambda wanted=number * schedules: (
                    Run.objects.filter(status__in=ENDED_RUNS).count() >= wanted
                ),
                f"the end of all runs of round {number}",
            )
    assert Run.objects.count() == rounds * schedules
    assert ScheduleFiring.objects.filter(outcome="started").count() == rounds * schedules
    each = Run.objects.values("trigger").annotate(count=Count("id"))
    assert {row["count"] for row in each} == {rounds}
