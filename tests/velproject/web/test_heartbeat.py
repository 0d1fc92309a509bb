"""A web process reports that it lives and that it ends."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

from tests.support.runs import wait_until
from tests.support.site import migrated_site


def test_its_row_goes_with_it(tmp_path: Path) -> None:
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
