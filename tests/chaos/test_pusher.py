"""The process of a cluster that looks for tasks in the database all the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

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
    """End the connection of the pusher between two looks.

    django-q2 replaces a pusher whose connection ends during a look.
    """

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
        # A connection lasts a minute: on a busy machine there may be a second one.
        assert len({pid for pid, _ in seen}) <= 2
        [pusher] = pushers
        terminate_after_a_look(pusher)
        wait_until(looks, "another connection")
        wait_for_status(start_run(user), "completed")
        assert cluster.pids("pusher") == pushers
