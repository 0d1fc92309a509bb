"""Which database is Vel's own: agents never query it."""

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
    """`path` of a SQLite file, or `server` and `database`, PostgreSQL's own names for itself."""

    path: str = ""
    server: str = ""
    database: int = 0

    def is_file(self, path: str) -> bool:
        """Whether `path` is this database's file, or one that belongs to it, by any name."""
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
    """Asks Vel's database who it is. Within `ToolContext.in_database` only."""
    connection = db.connection
    if connection.vendor != "postgresql":
        return OwnDatabase(path=str(connection.settings_dict["NAME"]))
    with connection.cursor() as cursor:
        cursor.execute(_OF_SERVER)
        server = cursor.fetchone()[0]
        cursor.execute(_OF_DATABASE)
        return OwnDatabase(server=server, database=cursor.fetchone()[0])
