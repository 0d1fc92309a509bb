"""Invariant 1 for the driver: it renews its lease, and stops before the lease expires."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from agents.engine.process import heartbeat
from agents.engine.storage.lease import renew_leases
from agents.engine.storage.sql import CLOCK
from agents.models import Run, RunClock
from agents.models.database_clock import now_sql
from tests.agents.engine.test_model_faults import served
from tests.support.hang import HANG
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Fault, Turn
from tests.support.runs import (
    event_types,
    make_agent,
    make_user,
    running_worker,
    start_run,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

ENDLESS = Turn(text="Never ending", fault=Fault("hang_mid_stream"))


@contextmanager
def a_driven_run(lease: float) -> Iterator[tuple[Run, MessagesServer]]:
    """Start a run in a host of this process. Its model never ends the reply."""
    user = make_user()
    times = {"LEASE_SECONDS": lease, "HEARTBEAT_SECONDS": lease / 12}
    with served([ENDLESS] * 5, **times) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = start_run(user)
        with running_worker() as running:
            running.submit(run.id)
            assert server.wait_for(requests=1)
            # From here on, only the lease is written.
            wait_until(lambda: "text.delta" in event_types(run), "the text of the model")
            yield run, server
            running.stop(grace=0)


def lease_until(run: Run) -> float:
    until = RunClock.objects.values_list("lease_until", flat=True).get(run=run)
    assert until is not None
    return until


def database_time() -> float:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now_sql()}")
        return float(cursor.fetchone()[0])


@contextmanager
def lease_that_cannot_be_renewed(run: Run) -> Iterator[None]:
    """Lock the lease's row on another connection, so that the heartbeat cannot write it."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f'UPDATE "{CLOCK}" SET seq = seq WHERE run_id = %s', [run.id])
            held.set()
            release.wait(60)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    try:
        yield
    finally:
        release.set()
        thread.join()


@pytest.mark.slow
def test_a_lease_is_renewed_for_as_long_as_the_driver_waits() -> None:
    with a_driven_run(lease=2) as (run, server):
        first = lease_until(run)
        wait_until(lambda: lease_until(run) > first + 2 * 2, "two leases")
        assert RunClock.objects.get(run=run).fence == 1
        assert server.gone == 0


@pytest.mark.both_databases
def test_a_driver_that_cannot_renew_stops_before_its_lease_ends() -> None:
    """Even if the heartbeat waits long for the database."""
    with a_driven_run(lease=4) as (run, server):
        with lease_that_cannot_be_renewed(run):
            assert server.wait_for(gone=1)
            assert database_time() < lease_until(run)
        # The run is free: it is claimed again when the lease has expired.
        assert server.wait_for(requests=2)
        assert RunClock.objects.get(run=run).fence == 2


def test_a_driver_that_lost_its_run_stops() -> None:
    with a_driven_run(lease=4) as (run, server):
        RunClock.objects.filter(run=run).update(fence=7)
        assert server.wait_for(gone=1)


def test_a_renewal_that_fails_for_any_reason_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = threading.Event()

    def renew(fences: Mapping[str, int]) -> set[str]:
        if not failed.is_set():
            failed.set()
            raise ValueError("odd")
        return renew_leases(fences)

    with a_driven_run(lease=30) as (run, _):
        monkeypatch.setattr(heartbeat, "renew_leases", renew)
        assert failed.wait(HANG)
        before = lease_until(run)
        wait_until(lambda: lease_until(run) > before, "the renewal of the lease")
        assert RunClock.objects.get(run=run).fence == 1  # by the same driver
