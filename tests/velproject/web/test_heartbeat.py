"""A web process reports that it lives and that it ends."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from agents.models import ProcessKind, ServerProcess
from agents.services.machines.processes import Reporter
from tests.support.runs import wait_until
from tests.support.site import migrated_site
from velproject.web import heartbeat


@pytest.mark.slow
def test_its_row_is_removed_with_the_process(tmp_path: Path) -> None:
    site = migrated_site(tmp_path)
    site.environment["VEL_METRICS_TOKEN"] = "t" * 40

    def kinds() -> list[str]:
        with sqlite3.connect(site.database_file) as database:
            return [row[0] for row in database.execute("SELECT kind FROM agents_serverprocess")]

    try:
        site.start_server()
        wait_until(lambda: kinds() == ["web"])
        os.kill(site.server_pid, signal.SIGTERM)
        # Before other processes would count it as dead.
        wait_until(lambda: "web" not in kinds())
    finally:
        site.close()


@pytest.mark.django_db(transaction=True)
def test_a_heartbeat_that_fails_for_any_reason_is_followed_by_others() -> None:
    ServerProcess.objects.create(name="gone", kind=ProcessKind.WEB, seen_at=0, counters='{"a": {}}')
    sums = ServerProcess.objects.create(name=ServerProcess.RETIRED, counters="not JSON")
    reporter = Reporter(ProcessKind.WEB, "here")
    heartbeat._say(reporter.report)
    assert not ServerProcess.objects.filter(pk="here").exists()
    ServerProcess.objects.filter(pk=sums.pk).update(counters="")
    heartbeat._say(reporter.report)
    assert ServerProcess.objects.filter(pk="here").exists()
