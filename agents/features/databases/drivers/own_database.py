"""The identity of Vel's own database, which agents must never query."""

from __future__ import annotations

import os
from dataclasses import dataclass

from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    from django import db  # helper processes have no Django


_OF_SERVER = "SELECT system_identifier::text FROM pg_control_system()"
_OF_DATABASE = "SELECT oid::bigint FROM pg_catalog.pg_database WHERE datname = current_database()"


@dataclass(frozen=True, slots=True)
class OwnDatabase:
    """The `path` of a SQLite file, or PostgreSQL's own ids of the `server` and the `database`."""

    path: str = ""
    server: str = ""
    database: int = 0

    def is_file(self, path: str) -> bool:
        """Return whether `path` is a file of this database, also under another name."""
        if not self.path:
            return False
        for suffix in ("", "-wal", "-shm", "-journal"):
            own = self.path + suffix
            if os.path.realpath(path) == os.path.realpath(own):
                return True
            if os.path.exists(own) and os.path.samefile(path, own):
                return True
        return False


def own_database() -> OwnDatabase:
    """Query the identity of Vel's database. Only within `ToolContext.in_database`."""
    connection = db.connection
    if connection.vendor != "postgresql":
        return OwnDatabase(path=str(connection.settings_dict["NAME"]))
    with connection.cursor() as cursor:
        cursor.execute(_OF_SERVER)
        server = cursor.fetchone()[0]
        cursor.execute(_OF_DATABASE)
        return OwnDatabase(server=server, database=cursor.fetchone()[0])
