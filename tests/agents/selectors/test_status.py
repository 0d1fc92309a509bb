"""The current status for operators: leases and model errors."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Run, RunClock
from agents.selectors.metrics import leases
from agents.selectors.status import model_errors
from agents.states import RunStatus
from tests.agents.api.rows import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture
def ann() -> User:
    make_agent(sandbox=False)
    return make_user("ann")


def driven(owner: User, until: float | None, holder: str = "w", **fields: str) -> None:
    run = make_run(owner)
    Run.objects.filter(pk=run.pk).update(**{"status": RunStatus.RUNNING, **fields})
    lease = None if until is None else time.time() + until
    RunClock.objects.filter(run=run).update(lease_until=lease, lease_holder=holder)


def test_a_lease_is_held_or_lost_or_of_the_past(ann: User) -> None:
    driven(ann, 20, "a")
    driven(ann, 20, "a")
    driven(ann, 20, "b")
    driven(ann, -1)  # the sweeper sees it soon
    driven(ann, 20, status=RunStatus.COMPLETED)
    driven(ann, -60, executor="somebody's program")  # no worker may resume it
    assert (leases().held, leases().lost) == ({"a": 2, "b": 1}, 0)
    driven(ann, -60)
    driven(ann, None)
    assert leases().lost == 2


def failed(owner: User, code: str, hours: float, message: str = "no") -> None:
    run = make_run(owner)
    ended = timezone.now() - timedelta(hours=hours)
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.FAILED, error_code=code, error_message=message, ended_at=ended
    )


def test_model_errors_of_the_last_hour_by_provider(ann: User) -> None:
    failed(ann, "model_overloaded", 0.5, "earlier")
    failed(ann, "model_overloaded", 0.1, f"a\n{KEY}")
    failed(ann, "model_rate_limited", 0.2)
    failed(ann, "model_rate_limited", 1.1)
    failed(ann, "max_turns", 0.1)
    [row] = model_errors()
    assert (row.provider, row.runs) == ("scripted", 3)
    assert row.codes == {"overloaded": 2, "rate_limited": 1}
    assert row.last == "a [secret withheld]"
