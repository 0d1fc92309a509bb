"""Create a migrated database once for all processes of a test run. Tests get copies.

Each process of pytest, site and data directory needs its own database, and a migration takes 1 s.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.db import connections

from tests.support.shared import alone, shared_directory

ROOT = Path(__file__).resolve().parents[2]
_MIGRATE = (
    "import django; django.setup(); from django.core.management import call_command; "
    # Skip the checks: tests can use the directory, although sandboxes cannot.
    "call_command('migrate', verbosity=0, skip_checks=True)"
)


_of_this_process: list[str] = []
"""The name of the database that `django.db` uses, if there is one already."""


def lay_database(name: str) -> None:
    """Put a migrated database where Django's test runner is about to create one."""
    if server := os.environ.get("VEL_TEST_DATABASE_URL"):
        copy_postgres(server, name)
    else:
        copy_sqlite(Path(name))
    _of_this_process[:] = [name]


def renew() -> None:
    """Replace the database of this process, and its connections, with new ones.

    A thread that still has a connection can no longer use the database.
    """
    from django.contrib.contenttypes.models import ContentType  # conftest.py imports this module

    for name in _of_this_process:
        for alias in connections:
            connections[alias].close()
            del connections[alias]
        if "VEL_TEST_DATABASE_URL" not in os.environ:
            for end in ("", "-wal", "-shm", "-journal"):
                Path(f"{name}{end}").unlink(missing_ok=True)
        lay_database(name)
        ContentType.objects.clear_cache()


def copy_sqlite(file: Path) -> None:
    """Put a migrated SQLite database at `file`, which no process has open."""
    place = shared_directory() / "migrated.sqlite3"
    with alone("migrated"):
        if not place.exists():
            fresh = place.with_suffix(".new")
            fresh.unlink(missing_ok=True)  # left by a killed process
            _migrate(f"sqlite:///{fresh}")
            fresh.rename(place)
    for end in ("-wal", "-shm", "-journal"):  # of an earlier database of this name
        Path(f"{file}{end}").unlink(missing_ok=True)
    shutil.copyfile(place, file)
    file.chmod(0o600)  # the same mode that Vel sets


def copy_postgres(server_url: str, name: str) -> None:
    """Create the migrated database `name` on the server, and replace an existing one."""
    run = hashlib.sha256(f"{shared_directory()} {server_url}".encode()).hexdigest()[:16]
    template = f"migrated_{run}"
    # The lock is held during the copy: PostgreSQL copies no database that has connections.
    with alone(template), psycopg.connect(server_url, autocommit=True) as server:
        is_there = "SELECT 1 FROM pg_database WHERE datname = %s"
        if server.execute(is_there, [template]).fetchone() is None:
            # The first statement removes the database of a killed process.
            server.execute(f'DROP DATABASE IF EXISTS "{template}_new" WITH (FORCE)')
            server.execute(f'CREATE DATABASE "{template}_new"')
            _migrate(urlsplit(server_url)._replace(path=f"/{template}_new").geturl())
            server.execute(f'ALTER DATABASE "{template}_new" RENAME TO "{template}"')
        server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')


def _migrate(database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MIGRATE],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "velproject.settings",
            "DATABASE_URL": database_url,
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the migrations failed: {done.stderr}")
