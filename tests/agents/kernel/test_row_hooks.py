"""Hooks of features in the transactions that change a run's row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.engine.storage.finish import complete_run, fail_run
from agents.engine.storage.lease import hand_back
from agents.kernel import row_hooks
from agents.kernel.row_hooks import RowHooks, register, unregister
from agents.models import Run, RunClock, RunEvent
from agents.services.runs.control import cancel_run, resume_run
from agents.services.runs.wake import wake_due
from agents.states import RunStatus, WaitReason
from tests.agents.engine.by_hand import claim, claimed, committed, let_lease_expire, new_run
from tests.support.hang import HANG

pytestmark = pytest.mark.django_db(transaction=True)


def test_no_thread_changes_a_run_before_the_hooks_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = Event(), Event()
    real = row_hooks.entries

    def slow(module: str, attribute: str) -> Any:
        begun.set()
        assert go_on.wait(HANG)
        return real(module, attribute)

    monkeypatch.setattr(row_hooks, "_is_loaded", [])
    monkeypatch.setattr(row_hooks, "entries", slow)
    first, second = Thread(target=row_hooks._load), Thread(target=row_hooks._load)
    first.start()
    assert begun.wait(HANG)
    second.start()
    second.join(0.2)
    waited = second.is_alive()
    go_on.set()
    first.join()
    second.join()
    assert waited


class Noting(RowHooks):
    """Records its calls and the rows at each call."""

    order = 1
    waits_for = "lunch"
    seen: list[tuple[Any, ...]] = []

    def started(self, run: Run) -> dict[str, Any]:
        self.seen.append(("started", run.status))
        return {"started_by": {"kind": "person", "id": None, "name": "soup"}}

    def released(self, run_id: str, clock: RunClock) -> None:
        self.seen.append(("released", clock.run_id == run_id))

    def ended(self, run: Run, *, wake: bool) -> None:
        self.seen.append(("ended", run.status, wake))

    def resumed(self, run: Run, *, had_ended: bool) -> None:
        self.seen.append(("resumed", had_ended))

    def stop_waiting(self, run: Run) -> None:
        self.seen.append(("stop_waiting", run.wait_reason))

    def time_over(self, run: Run) -> str:
        self.seen.append(("time_over", run.wait_reason))
        return "lunch is over"


class Refusing(RowHooks):
    order = 2

    def ended(self, run: Run, *, wake: bool) -> None:
        raise RuntimeError("not before the soup")


@pytest.fixture
def seen() -> Iterator[list[tuple[Any, ...]]]:
    """Record the calls of the hooks from now on."""
    Noting.seen = []
    register(Noting)
    yield Noting.seen
    unregister(Noting)


def test_a_claim_calls_started_once_and_released_each_time(seen: list[Any]) -> None:
    _, run = new_run()
    claimed(run)
    assert seen == [("started", "queued"), ("released", True)]
    event = RunEvent.objects.get(run=run, type="run.started")
    assert json.loads(event.data)["started_by"]["name"] == "soup"
    let_lease_expire(run)
    assert claim(run) is not None
    assert seen[2:] == [("released", True)]


def test_a_run_that_is_answered_is_released_and_ended(seen: list[Any]) -> None:
    _, run = new_run()
    writer = claimed(run)
    seen.clear()
    committed(complete_run, writer, "end_turn", 0)
    assert seen == [("released", True), ("ended", "completed", True)]


def test_a_run_that_is_handed_back_is_only_released(seen: list[Any]) -> None:
    _, run = new_run()
    writer = claimed(run)
    seen.clear()
    committed(hand_back, writer)
    assert seen == [("released", True)]


def test_a_resumed_run_tells_hooks_whether_it_had_ended(seen: list[Any]) -> None:
    _, run = new_run()
    writer = claimed(run)
    committed(fail_run, writer, "broken", "It broke.", 0)
    seen.clear()
    resume_run(run.pk)
    resume_run(run.pk)
    assert seen == [("resumed", True), ("resumed", False)]


def test_only_the_feature_that_a_run_waits_for_stops_waiting(seen: list[Any]) -> None:
    _, run = new_run()
    for reason in ("lunch", WaitReason.APPROVAL):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.WAITING, wait_reason=reason)
        cancel_run(run.pk, by="ada")
    assert seen == [
        ("stop_waiting", "lunch"),
        ("released", True),
        ("ended", "cancelled", True),
        ("released", True),
        ("ended", "cancelled", True),
    ]


def test_only_the_awaited_feature_gives_the_reason_to_continue(seen: list[Any]) -> None:
    _, run = new_run()
    reasons = []
    for reason in ("lunch", WaitReason.CHILDREN):
        Run.objects.filter(pk=run.pk).update(
            status=RunStatus.WAITING, wait_reason=reason, wake_at=1.0
        )
        assert committed(wake_due)
        event = RunEvent.objects.filter(run=run, type="run.resumed").latest("seq")
        reasons.append(json.loads(event.data)["reason"])
    assert reasons == ["lunch is over", "the time is over"]
    assert seen == [("time_over", "lunch")]


def test_an_exception_of_a_hook_undoes_the_whole_change(seen: list[Any]) -> None:
    _, run = new_run()
    writer = claimed(run)
    register(Refusing)
    try:
        with pytest.raises(RuntimeError, match="soup"):
            committed(complete_run, writer, "end_turn", 0)
    finally:
        unregister(Refusing)
    run.refresh_from_db()
    assert run.status == "running"
    assert not RunEvent.objects.filter(run=run, type="run.completed").exists()


def test_two_features_cannot_have_the_same_reason(seen: list[Any]) -> None:
    class Other(RowHooks):
        waits_for = "lunch"

    with pytest.raises(ImproperlyConfigured, match=r"Noting and .*Other both .* 'lunch'"):
        register(Other)


def test_hooks_that_are_registered_twice_are_called_once(seen: list[Any]) -> None:
    register(Noting)
    _, run = new_run()
    claimed(run)
    assert [what for what, _ in seen] == ["started", "released"]
