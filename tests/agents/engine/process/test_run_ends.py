"""Listeners of the ends of runs: one that raises is called again, and delays no other end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import timezone

from agents.models import EndedRun, Run
from agents.services.runs.control import cancel_run
from agents.services.runs.ends import EndListener, end_listeners
from tests.support.runs import make_agent, make_user, running_worker, start_run, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


class Listener(EndListener):
    """It raises for the runs in `refused`."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.refused: set[str] = set()

    def wants_ends(self) -> bool:
        return True

    async def run_ended(self, run: Run) -> None:
        self.told.append(run.pk)
        if run.pk in self.refused:
            raise ValueError("of a listener")


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    listener = Listener()
    monkeypatch.setattr("agents.features.guardrails.run_ends.END_LISTENERS", (listener,))
    end_listeners.cache_clear()
    yield listener
    end_listeners.cache_clear()


def test_an_end_with_a_failing_listener_is_reported_again(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    ada = make_user()
    make_agent(ada)
    first, second = (start_run(ada) for _ in range(2))
    for run in (first, second):
        cancel_run(run.pk, by="ada")
    listener.refused = {first.pk}
    with running_worker():
        others = EndedRun.objects.exclude(run=first)
        wait_until(lambda: not others.exists(), "the end of the other run")
        row = EndedRun.objects.get()
        assert listener.told == [first.pk, second.pk]
        assert row.due_at > timezone.now()
        assert "notifying of ended runs failed; it is tried again" in caplog.text
        listener.refused.clear()
        EndedRun.objects.update(due_at=timezone.now())  # simulate the time
        wait_until(lambda: not EndedRun.objects.exists(), "the end told again")
    assert listener.told == [first.pk, second.pk, first.pk]
