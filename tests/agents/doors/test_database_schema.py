"""The migrations of a database, and databases that this version cannot use."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from agents.doors.database_schema import ensure_schema, missing_migrations, unknown_migrations


@pytest.mark.django_db(transaction=True)
def test_the_names_on_disk_are_the_migrations_that_django_knows() -> None:
    assert missing_migrations() == []
    assert unknown_migrations() == []
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations"
            " WHERE app IN ('agents', 'memory', 'skills_app') OR app LIKE 'vel_%'"
        )
    ours = ("agents", "memory", "skills_app")
    known = {
        f"{app}.{name}"
        for app, name in executor.loader.graph.nodes
        if app in ours or app.startswith("vel_")
    }
    assert set(missing_migrations()) == known
    call_command("migrate", fake=True, verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_djangos_own_command_refuses_a_database_of_a_development_version() -> None:
    recorder = MigrationRecorder(connection)
    later = sorted(
        (app, name)
        for app, name in MigrationExecutor(connection).loader.graph.nodes
        if app.startswith("vel_")
        or (app in ("agents", "memory", "skills_app") and name != "0001_initial")
    )
    recorder.record_applied("agents", "0002_sandbox_options")
    for app, name in later:
        recorder.record_unapplied(app, name)
    try:
        for migrate in (lambda: call_command("migrate", verbosity=0), ensure_schema):
            with pytest.raises(CommandError, match=r"development version before 0\.1\.0"):
                migrate()
        assert missing_migrations() == [f"{app}.{name}" for app, name in later]
    finally:
        recorder.record_unapplied("agents", "0002_sandbox_options")
        for app, name in later:
            recorder.record_applied(app, name)
