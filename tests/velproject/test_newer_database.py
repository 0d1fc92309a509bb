"""Processes of this version stay ready on a database that a newer version has migrated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.velproject.command import ROOT, Vel
from tests.velproject.test_up import running, until

PACKAGES = (
    *("vel", "velproject", "agents", "skills_app", "memory", "text_scanner", "language_model"),
    *("sandbox", "templates"),
)
ADDS = "migrations.AddField('backgroundjob', 'note', models.TextField(null=True))"
BREAKS = "migrations.RenameField('backgroundjob', 'due_at', 'next_at')"


def add_migration(newer: Path, name: str, after: str, operation: str) -> None:
    (newer / "agents/migrations" / f"{name}.py").write_text(
        "from django.db import migrations, models\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('agents', '{after}')]\n"
        f"    operations = [{operation}]\n"
    )


@pytest.mark.slow
def test_old_processes_stay_ready_until_a_migration_ends_their_work(
    vel: Vel, tmp_path: Path
) -> None:
    newer = tmp_path / "newer"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, newer / name)
    migrations = sorted((newer / "agents/migrations").glob("[0-9]*.py"))
    with running(vel) as up:
        until(lambda: up.page("/readyz") == 200)
        add_migration(newer, "9998_adds", migrations[-1].stem, ADDS)
        assert vel.fresh("migrate", PYTHONPATH=str(newer)).returncode == 0
        vel.execute("UPDATE agents_backgroundjob SET note = NULL")  # the column exists
        up.kill("web")  # the next process has no earlier result
        until(lambda: up.page("/readyz") == 200)
        add_migration(newer, "9999_breaks", "9998_adds", BREAKS)
        assert vel.fresh("migrate", PYTHONPATH=str(newer)).returncode == 0
        until(lambda: up.page("/readyz") == 503)
