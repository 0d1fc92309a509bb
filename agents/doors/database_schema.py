"""Migration of the database, safe to call from several processes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DEFAULT_DB_ALIAS, connection, connections

from agents.kernel.features import collect
from agents.kernel.lazy_modules import lazy_modules
from agents.settings import DataSettings

with lazy_modules:
    from agents.engine.storage import database  # only a process with a newer database needs it

MIGRATION_LOCK = 0x76656C  # "vel", for PostgreSQL's advisory locks
_BEFORE_0_1_0 = ("agents", "0002_sandbox_options")
"""Only databases of development versions have this migration."""


def ensure_schema(*, announce: bool = True) -> bool:
    """Apply missing migrations. Return True if there were any.

    Usually this takes a few queries and a listing of the packages' directories. If several
    processes find missing migrations, one applies them and the others wait. Raises `CommandError`
    for a database of a development version.
    """
    protect_database_file()
    refuse_development_database()
    refuse_for_features()
    if not missing_migrations():
        return False
    with _only_one():
        if not missing_migrations():
            return False
        if announce:
            print("vel: preparing the database", file=sys.stderr)
        call_command("migrate", interactive=False, verbosity=0)
    connection.close()
    return True


def refuse_development_database(using: str = DEFAULT_DB_ALIAS) -> None:
    """Raise `CommandError` if a development version before 0.1.0 made the database.

    Its migrations were replaced, so it can neither be used nor be upgraded. Reads only.
    """
    if is_development_database(using):
        raise CommandError(
            f"The database {connections[using].settings_dict['NAME']} was made by a development "
            "version before 0.1.0. This version can neither use nor upgrade it, and has not "
            "changed it. Move it away, or use another database: Vel prepares a new one."
        )


def feature_refusal() -> str:
    """Return why a feature refuses to work with the database, or an empty text.

    Features list functions in `starting.REFUSALS`. Each process calls them at its start, before
    the migrations, so each one takes at most one cheap query.
    """
    return next(filter(None, (look() for _, look in collect("starting", "REFUSALS"))), "")


def refuse_for_features() -> None:
    """Raise `CommandError` if a feature refuses to work with the database."""
    if reason := feature_refusal():
        raise CommandError(reason)


def is_development_database(using: str = DEFAULT_DB_ALIAS) -> bool:
    """Return whether a development version before 0.1.0 made the database."""
    return _BEFORE_0_1_0 in _applied(using)


def missing_migrations() -> list[str]:
    """Return `app.name` of each migration in the packages that the database has not applied.

    Uses file names only, without imports. Raises Django's database errors if it cannot connect.
    """
    on_disk = {
        (config.label, file.stem)
        for config in apps.get_app_configs()
        for file in (Path(config.path) / "migrations").glob("[0-9]*.py")
    }
    return sorted(f"{app}.{name}" for app, name in on_disk - _applied())


def unknown_migrations() -> list[str]:
    """Return migrations of installed apps that the database has and the packages lack."""
    known = {config.label: Path(config.path) / "migrations" for config in apps.get_app_configs()}
    return sorted(
        f"{app}.{name}"
        for app, name in _applied()
        if app in known and not (known[app] / f"{name}.py").exists()
    )


def incompatible_columns() -> list[str]:
    """Return the differences of the tables for which this version's reads or writes would fail.

    A newer version may have added tables and columns. This version needs all of its own columns,
    and writes no value into others. Takes one query. Only for SQLite and PostgreSQL.
    """
    there = database.stored_columns()
    found = []
    for model in apps.get_models(include_auto_created=True):
        name = model._meta.db_table
        if not model._meta.managed or model._meta.proxy:
            continue
        if name not in there:
            found.append(f"{name} is missing")
            continue
        ours = {str(field.column) for field in model._meta.local_concrete_fields}
        found += [f"{name}.{each} is missing" for each in sorted(ours - there[name].keys())]
        others = sorted(there[name].keys() - ours)
        found += [f"{name}.{each} needs a value" for each in others if there[name][each]]
    return found


def _applied(using: str = DEFAULT_DB_ALIAS) -> set[tuple[str, str]]:
    if "django_migrations" not in connections[using].introspection.table_names():
        return set()
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        return {(str(app), str(name)) for app, name in cursor.fetchall()}


def protect_database_file() -> None:
    """Create SQLite's file if it is missing, readable by this account only.

    An existing file keeps its mode.

    The accounts of sandboxes need access to its directory, so the directory cannot protect the
    file. SQLite uses the same mode for the files that it adds.
    """
    if connection.vendor != "sqlite":
        return
    file = str(connection.settings_dict["NAME"])
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    if os.path.getsize(file) == 0:
        # The first connection changes an empty file to write-ahead logging. SQLite refuses that
        # immediately, with any timeout, if two connections do it at the same moment.
        with _only_one():
            connection.ensure_connection()


@contextmanager
def _only_one() -> Iterator[None]:
    """Hold the lock for migrating this database."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
        return
    name = hashlib.sha256(os.path.realpath(connection.settings_dict["NAME"]).encode()).hexdigest()
    path = DataSettings.now().DATA_DIR / f"migrate-{name[:16]}.lock"
    with os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
