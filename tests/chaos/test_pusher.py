"""The process of a cluster that polls the database for tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection, transaction
from django_q.models import OrmQ

from tests.support.cluster import APPLICATION, Cluster, freeze, thaw
from tests.support.runs import make_agent, make_user, start_run, wait_for_status, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def looks() -> list[tuple[int, object]]:
    """Return the idle connections that last read the queue: server process, time of the query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, query_start FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = %s "
            "AND query LIKE 'SELECT%%django_q_ormq%%' AND state = 'idle'",
            [APPLICATION],
        )
        return list(cursor.fetchall())


def terminate_after_a_look(pusher: int) -> None:
    """End the connection of the pusher between two polls."""

    def is_between_two_looks() -> bool:
        freeze(pusher)
        if looks():
            return True
        thaw(pusher)
        return False

    wait_until(is_between_two_looks, "a pause of the pusher")
    with connection.cursor() as cursor:
        for server_process, _ in looks():
            cursor.execute("SELECT pg_terminate_backend(%s)", [server_process])
    wait_until(lambda: not looks(), "the end of the connection")
    thaw(pusher)


@pytest.mark.slow
def test_it_keeps_its_connection_and_gets_over_its_loss(directory: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    user = make_user()
    make_agent(user)
    with Cluster(directory, workers=1) as cluster:
        pushers = wait_until(lambda: cluster.pids("pusher"), "the pusher")
        seen: set[tuple[int, object]] = set()

        def has_seen_ten() -> bool:
            seen.update(looks())
            return len(seen) >= 10

        wait_until(has_seen_ten, "ten looks into the queue")
        # A connection lasts a minute, so there may be a second one on a busy machine.
        assert len({pid for pid, _ in seen}) <= 2
        [pusher] = pushers
        terminate_after_a_look(pusher)
        wait_until(looks, "another connection")
        wait_for_status(start_run(user), "completed")
        assert cluster.pids("pusher") == pushers


def terminate_during_a_look() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE django_q_ormq")

        def terminated() -> bool:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = %s "
                "AND query LIKE 'SELECT%%django_q_ormq%%' AND wait_event_type = 'Lock'",
                [APPLICATION],
            )
            return cursor.fetchone() is not None

        wait_until(terminated, "a look of the pusher")


@pytest.mark.slow
def test_a_connection_that_ends_during_a_look_is_one_line_in_the_log(directory: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    user = make_user()
    make_agent(user)
    with Cluster(directory, workers=1) as cluster:
        pushers = wait_until(lambda: cluster.pids("pusher"), "the pusher")
        for number in (1, 2):
            terminate_during_a_look()
            wait_until(
                lambda number=number: (
                    cluster.log.read_text().count("cannot read the queue") >= number
                ),
                "a line in the log",
            )
        wait_for_status(start_run(user), "completed")
        wait_until(lambda: not OrmQ.objects.exists(), "the pusher to take the task")
        assert cluster.pids("pusher") == pushers
        assert "Traceback" not in cluster.log.read_text()
