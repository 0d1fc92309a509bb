"""The findings about defaults, space and time, and migrations that end old processes."""

from __future__ import annotations

import pytest
from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from agents.features.operations.upgrades.changed_defaults import ChangedDefault
from agents.features.operations.upgrades.check import check_defaults, check_needs
from agents.features.operations.upgrades.plan import (
    PendingMigration,
    pending_migrations,
    table_rows,
)
from agents.features.operations.upgrades.rolling import (
    breaks_old_processes,
    database_operations,
)
from agents.kernel.findings import Level

CHANGES = [
    ChangedDefault("0.10.0", "VEL_WORKERS", "2", "4"),
    ChangedDefault("0.2.0", "VEL_QUEUE", "`vel`", "`runs`"),
]


def details(environ: dict[str, str], since: str) -> list[str]:
    found = check_defaults(CHANGES, environ, since)
    return [one.detail for one in found if one.level is Level.NOTE]


def test_a_changed_default_of_an_unset_setting_is_reported() -> None:
    assert details({}, "") == [
        "VEL_WORKERS was 2, and is 4 since 0.10.0",
        "VEL_QUEUE was `vel`, and is `runs` since 0.2.0",
    ]


def test_a_setting_with_a_value_keeps_it() -> None:
    assert details({"VEL_WORKERS": "2"}, "0.1.0") == [
        "VEL_QUEUE was `vel`, and is `runs` since 0.2.0"
    ]


def test_only_defaults_of_later_versions_are_reported() -> None:
    assert details({}, "0.9.9") == ["VEL_WORKERS was 2, and is 4 since 0.10.0"]
    assert details({}, "0.10.0") == []


def pending(*tables: str, runs_code: bool = False) -> PendingMigration:
    return PendingMigration("agents.0002_more", tables, runs_code, ())


ROWS = {"agents_runevent": 1_000_000, "agents_run": 5_000}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("migration", "expected"),
    [
        (pending("agents_runevent"), "at most 40 s for 1,000,000 rows of agents_runevent"),
        (pending("agents_run"), "at most 0 s for 5,000 rows of agents_run"),
        (pending(runs_code=True), "at most 40 s for 1,005,000 rows of any table"),
    ],
)
def test_the_time_depends_on_the_rows_that_migrations_change(
    migration: PendingMigration, expected: str
) -> None:
    found = {one.subject: one.detail for one in check_needs([migration], ROWS)}
    assert found["time"].startswith(expected)


@pytest.mark.django_db
def test_a_migration_of_no_rows_needs_no_space() -> None:
    (found,) = check_needs([pending()], ROWS)
    assert "need at most 0 MB" in found.detail


@pytest.mark.django_db
@pytest.mark.both_databases
def test_every_table_is_counted_and_no_migration_is_pending() -> None:
    assert pending_migrations() == []
    rows = table_rows()
    assert rows["django_content_type"] > 0
    assert rows["agents_run"] == 0
    assert list(rows.values()) == sorted(rows.values(), reverse=True)


FIELDS = [
    ("id", models.BigAutoField(primary_key=True)),
    ("name", models.CharField(max_length=50)),
    ("note", models.TextField(null=True)),
]


def add(field: models.Field) -> Operation:
    return migrations.AddField("run", "extra", field)


def alter(field: models.Field, name: str = "name") -> Operation:
    return migrations.AlterField("run", name, field)


def migrated_by(*operations: Operation) -> tuple[migrations.Migration, ProjectState]:
    state = ProjectState()
    state.add_model(ModelState("shop", "Run", list(FIELDS)))
    migration = migrations.Migration("0002_more", "shop")
    migration.operations = list(operations)
    return migration, state


def broken_by(*operations: Operation) -> list[str]:
    migration, state = migrated_by(*operations)
    found = breaks_old_processes(migration, state)
    assert list(state.models["shop", "run"].fields) == ["id", "name", "note"]
    return found


ENDS_OLD: list[Operation] = [
    migrations.DeleteModel("Run"),
    migrations.RemoveField("run", "name"),
    migrations.RenameField("run", "name", "title"),
    migrations.RenameModel("Run", "Job"),
    migrations.AlterModelTable("run", "jobs"),
    add(models.IntegerField(default=0)),
    alter(models.IntegerField()),
    alter(models.CharField(max_length=40)),
    alter(models.TextField(), "note"),
    alter(models.CharField(max_length=50, unique=True)),
    migrations.SeparateDatabaseAndState(
        database_operations=[migrations.RemoveField("run", "name")]
    ),
]

KEEPS_OLD: list[Operation] = [
    add(models.IntegerField(null=True)),
    add(models.IntegerField(db_default=0)),
    add(models.ManyToManyField("shop.Run")),
    alter(models.CharField(max_length=60)),
    alter(models.CharField(max_length=50, null=True)),
    alter(models.CharField(max_length=50, db_index=True, help_text="The name")),
    migrations.CreateModel("Other", [("id", models.BigAutoField(primary_key=True))]),
    migrations.AlterModelOptions("run", {"ordering": ["name"]}),
    migrations.AddIndex("run", models.Index(fields=["name"], name="by_name")),
    migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("run", "name")]),
]


@pytest.mark.parametrize("operation", ENDS_OLD, ids=lambda one: one.describe())
def test_a_migration_that_ends_the_work_of_old_processes_is_found(operation: Operation) -> None:
    assert len(broken_by(operation)) == 1


@pytest.mark.parametrize("operation", KEEPS_OLD, ids=lambda one: one.describe())
def test_a_migration_that_old_processes_survive_is_not_reported(operation: Operation) -> None:
    assert broken_by(operation) == []


def test_a_new_help_text_changes_no_rows_and_a_new_default_does() -> None:
    text = alter(models.CharField("the name", max_length=50, help_text="The name", blank=True))
    default = alter(models.CharField(max_length=50, default=""))
    extra = [add(models.TextField(null=True)), alter(models.TextField(null=True), "extra")]
    options = migrations.AlterModelOptions("run", {"ordering": ["name"]})
    migration, state = migrated_by(text, default, *extra, options)
    assert list(database_operations(migration, state)) == [default, extra[0]]


def test_an_operation_sees_the_fields_that_an_earlier_one_added() -> None:
    extra = [add(models.IntegerField(null=True)), alter(models.BigIntegerField(null=True), "extra")]
    assert len(broken_by(*extra)) == 1
