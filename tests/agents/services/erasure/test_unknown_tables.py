"""Erasure by a process of the old version, after a newer one has added a table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.utils import timezone

from agents.models import Run, Thread
from agents.services.erasure.actions import erase_thread, finish_erasures
from tests.agents.api.rows import answer_run, make_agent, make_run, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def newer_table() -> Iterator[str]:
    """Create a table as a migration of a newer version does."""
    table = "vel_newer_title"
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE {table} (thread_id varchar(26) PRIMARY KEY "
            "REFERENCES agents_thread (id) DEFERRABLE INITIALLY DEFERRED)"
        )
        yield table
        cursor.execute(f"DROP TABLE {table}")


@pytest.fixture
def threads(newer_table: str) -> list[str]:
    """Mark three threads as erased. A row of the newer table refers to the first one."""
    make_agent(sandbox=False)
    ann = make_user("ann")
    threads: list[str] = []
    for _ in range(3):
        run = make_run(ann)
        answer_run(run, "In June.")
        Run.objects.filter(pk=run.pk).update(ended_at=timezone.now())
        threads.append(run.thread_id)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {newer_table} VALUES (%s)", [threads[0]])
    for thread in threads:
        erase_thread(thread, by=ann)
    return threads


def test_a_row_of_a_newer_version_delays_only_the_erasure_of_its_thread(
    newer_table: str, threads: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    finish_erasures()
    assert list(Thread.every.values_list("pk", flat=True)) == threads[:1]
    assert not Thread.objects.exists()
    assert f"rows of thread {threads[0]} cannot be erased" in caplog.text
    # A process of the newer version deletes the row first.
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {newer_table}")
    finish_erasures()
    assert not Thread.every.exists()


def test_a_process_that_stops_erases_no_further_threads(
    threads: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    finish_erasures(stop=lambda: "cannot be erased" in caplog.text)
    assert list(Thread.every.order_by("pk").values_list("pk", flat=True)) == threads
