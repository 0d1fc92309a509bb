"""The quick look at which migrations are missing agrees with Django's own."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from velproject.schema import missing_migrations, unknown_migrations


@pytest.mark.django_db(transaction=True)
def test_the_names_on_disk_are_the_migrations_that_django_knows() -> None:
    assert missing_migrations() == []
    assert unknown_migrations() == []
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app IN ('agents', 'memory', 'skills_app')"
        )
    ours = ("agents", "memory", "skills_app")
    known = {f"{app}.{name}" for app, name in executor.loader.graph.nodes if app in ours}
    assert set(missing_migrations()) == known
    call_command("migrate", "agents", fake=True, verbosity=0)
