"""`vel` on PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.velproject.command import Vel, say

pytestmark = [pytest.mark.postgresql]


@pytest.mark.slow
def test_of_several_first_starts_one_prepares_the_database(vel: Vel, database_url: str) -> None:
    vel("runs", "list")  # starts the process that forks the others
    with ThreadPoolExecutor(3) as threads:
        url = {"DATABASE_URL": database_url}
        starts = [threads.submit(vel, "runs", "list", **url) for _ in range(3)]
        done = [start.result() for start in starts]
    assert [each.returncode for each in done] == [0, 0, 0], done
    assert sum("preparing the database" in each.stderr for each in done) == 1


def test_a_task_is_carried_out_and_waits_for_approval(vel: Vel, prepared: str) -> None:
    vel.environment["DATABASE_URL"] = prepared
    flags = vel.script(say("Looking.", ("ls", {"path": "."})), say("Done."))
    done = vel(*flags, "--approve", "ls", "look")
    assert done.returncode == 3, done.stderr
    (request,) = vel.rows("approvals", "list")
    assert vel("approvals", "decide", request["id"], "approve").returncode == 0
    resumed = vel("runs", "resume", request["run"])
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == "Done.\n"


@pytest.mark.slow
def test_the_doctor_knows_it(vel: Vel, prepared: str) -> None:
    assert vel("migrate", DATABASE_URL=prepared).returncode == 0
    assert "✓ database       postgresql" in vel("doctor", DATABASE_URL=prepared).stdout
