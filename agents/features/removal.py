"""Remove a feature from a database that has used it.

Django ignores the tables of an app that is not installed. They keep their foreign keys, so that
deleting a thread or a user can fail. Therefore a feature is removed here first, and then from the
settings.
"""

from __future__ import annotations

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from agents.kernel.features import FeatureConfig, collect, features
from agents.selectors.metrics import seen_processes
from agents.services.audit import record
from agents.services.errors import Conflict, NotFound

PREFIX = "vel_"
"""The prefix of the labels of Vel's own features."""


def feature_named(name: str) -> FeatureConfig:
    """Return the installed feature with this label, or with this label after `vel_`.

    Raises `NotFound`.
    """
    found = {config.label: config for config in features()}
    if config := found.get(name) or found.get(PREFIX + name):
        return config
    raise NotFound(f"No feature {name!r} is installed; there are: {', '.join(found) or 'none'}.")


def rows_of(feature: FeatureConfig) -> int:
    """Return how many rows the models of the feature have."""
    return sum(model._base_manager.count() for model in feature.get_models())


def remove_feature(feature: FeatureConfig) -> None:
    """Remove the tables of the feature with all their rows, its permissions and content types.

    First its functions in `removal.BEFORE_REMOVAL` are called, outside a transaction: they finish
    what else depends on its rows. If the process ends then, the next attempt calls them again.
    Afterwards the feature must be removed from the settings: the next start of Vel would make its
    tables again. Raises `Conflict` if another feature needs it, or if processes of Vel are alive.
    """
    needed_by = [each.label for each in features() if feature.label in each.requires]
    if needed_by:
        raise Conflict(f"{feature.label} is needed by {', '.join(needed_by)}: remove that first.")
    if alive := sum(1 for process in seen_processes() if process.is_alive):
        raise Conflict(
            f"{alive} processes of Vel use this database. Stop Vel, then remove the feature."
        )
    count = rows_of(feature)
    for config, prepare in collect("removal", "BEFORE_REMOVAL"):
        if config is feature:
            prepare()
    # Before: the way back of some migrations gives permissions to another app.
    ContentType.objects.filter(app_label=feature.label).delete()
    # Outside a transaction: SQLite cannot change tables in one. If this process ends in between,
    # the same command creates the tables again, and removes them and the rest.
    if feature.label in {app for app, _ in MigrationRecorder(connection).applied_migrations()}:
        call_command("migrate", feature.label, "zero", interactive=False, verbosity=0)
    with transaction.atomic():
        ContentType.objects.filter(app_label=feature.label).delete()
        note = f"{count} rows were deleted."
        record("feature.removed", "feature", name=feature.label, note=note)


def leftovers(database: BaseDatabaseWrapper | None = None) -> list[str]:
    """Return the labels of apps that are not installed, but have migrations in the database.

    These are Vel's features, and other apps with a table that refers to one of the app `agents`.
    """
    looked_at = database or connections[DEFAULT_DB_ALIAS]
    applied = {app for app, _ in MigrationRecorder(looked_at).applied_migrations()}
    missing = applied - apps.app_configs.keys()
    return sorted(
        label for label in missing if label.startswith(PREFIX) or _refers_to_vel(label, looked_at)
    )


def _refers_to_vel(label: str, database: BaseDatabaseWrapper) -> bool:
    ours = {model._meta.db_table for model in apps.get_app_config("agents").get_models()}
    with database.cursor() as cursor:
        look = database.introspection
        tables = [name for name in look.table_names(cursor) if name.startswith(f"{label}_")]
        return any(
            target in ours
            for table in tables
            for _, target in look.get_relations(cursor, table).values()
        )
