"""A process and the runs that it takes."""

from __future__ import annotations

import pytest

from agents.engine import host as engine_host
from agents.models import POOL
from tests.support.runs import host, make_agent, make_user, start_run, wait_for_status

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_full_process_takes_the_next_run_as_soon_as_it_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_host, "QUEUE_SWEEP_SECONDS", 3600)
    user = make_user()
    make_agent(user)
    runs = [start_run(user) for _ in range(4)]
    with host(executor=POOL, capacity=1) as running:
        for run in runs:
            running.submit(run.id)
        for run in runs:
            wait_for_status(run, "completed")
