"""The two databases of a move: what both kinds of databases have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, ClassVar

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import NotSupportedError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from agents.features.operations.database_move.errors import MoveRefused, NotEmpty
from agents.features.operations.database_move.tables import MADE_BY_MIGRATE, Content, Table
from agents.features.operations.starting import write_mark

LOCK_SECONDS = 2
"""How long a move waits for locks of others."""
Row = tuple[Any, ...]


class Side(ABC):
    """A database with its own connection, which the rest of the process does not use."""

    title: ClassVar[str]

    def __init__(self, alias: str, settings: dict[str, Any]) -> None:
        self.alias = alias
        self.settings = settings
        self._is_marked = False
        self._connect_with(settings)

    def _connect_with(self, settings: dict[str, Any]) -> None:
        """Let the alias use these settings, the defaults of Django added."""
        options = {key: value for key, value in settings["OPTIONS"].items() if key != "pool"}
        fresh = {**settings, "OPTIONS": options}
        found = connections.configure_settings({"default": fresh})["default"]
        connections.settings[self.alias] = found
        with suppress(AttributeError):  # the first connection of this alias
            del connections[self.alias]

    @property
    def connection(self) -> BaseDatabaseWrapper:
        return connections[self.alias]

    @property
    @abstractmethod
    def name(self) -> str:
        """The database for people, without a password."""

    @abstractmethod
    def identity(self) -> object:
        """Return a value that only the same database has, None if it does not exist.

        Raises:
            MoveRefused: The server cannot be reached.
        """

    def close(self) -> None:
        """Close the connection, and forget its settings."""
        self.connection.close()
        del connections[self.alias]
        del connections.settings[self.alias]
        ContentType.objects.clear_cache()

    def quoted(self, name: str) -> str:
        return self.connection.ops.quote_name(name)

    def table_names(self) -> set[str]:
        """Return the names of the tables, without those that are parts of other tables.

        Parts are, for example, partitions, or the tables in which SQLite stores a search index.
        """
        return set(self.connection.introspection.table_names())

    def has_rows(self, table: str) -> bool:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT 1 FROM {self.quoted(table)} LIMIT 1")  # noqa: S608  # quoted
            return cursor.fetchone() is not None

    def count(self, table: str) -> int:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {self.quoted(table)}")  # noqa: S608  # quoted
            return int(cursor.fetchone()[0])

    def migrations(self) -> set[tuple[str, str]]:
        """Return the applied migrations of installed apps, as pairs of an app and a name."""
        applied = MigrationRecorder(self.connection).applied_migrations()
        return {(app, name) for app, name in applied if app in apps.app_configs}

    @abstractmethod
    def rows(self, table: Table) -> Iterator[Row]:
        """Yield the rows in the order of the primary key.

        A value that cannot be read is a `BadValue`.
        """

    @abstractmethod
    def counter(self, table: Table) -> int:
        """Return the last number that the database has given to a row, 0 for none."""

    # As the source ---------------------------------------------------------------------------

    @abstractmethod
    def locked(self) -> AbstractContextManager[None]:
        """Keep all other processes from writing, in a transaction, until the end of the block.

        Raises:
            MoveRefused: Another process uses the database.
        """

    def mark(self, place: str) -> None:
        """Mark the database as moved. The end of the block of `locked` stores this."""
        write_mark(self.connection, place)
        self._is_marked = True

    @abstractmethod
    def size(self) -> int:
        """Return the size of the database in bytes."""

    # As the target ---------------------------------------------------------------------------

    @abstractmethod
    def examine(self, tables: Sequence[Table], expected: set[tuple[str, str]], size: int) -> None:
        """Check that the database can become the target. This changes nothing.

        Args:
            tables: The tables to copy.
            expected: The migrations of the source.
            size: The size of the source in bytes.

        Raises:
            NotEmpty: It has the same tables, with rows.
            MoveRefused: It cannot, for example because it has other tables.
        """

    @abstractmethod
    def completing(self) -> AbstractContextManager[None]:
        """Open a transaction on a target with rows that nobody else can use meanwhile.

        Raises:
            MoveRefused: Another process uses the database.
        """

    @abstractmethod
    def writing(
        self, tables: Sequence[Table], expected: set[tuple[str, str]]
    ) -> AbstractContextManager[None]:
        """Create the tables if necessary, and open a transaction. The end of the block commits it.

        After an error the database is as before.

        Raises:
            MoveRefused: Another process uses the database, or its tables cannot be created.
            CommitUnknown: The connection was lost at the end: see `has_committed`.
        """

    def has_committed(self, expected: Mapping[str, Content]) -> bool | None:
        """Return whether the copy is there after `CommitUnknown`; None if that is unknown."""
        raise NotImplementedError

    @abstractmethod
    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Store rows. Raises `MoveRefused` if the database refuses one of them."""

    @abstractmethod
    def set_counter(self, table: Table, value: int) -> None:
        """Set the last number that was given to a row."""

    @abstractmethod
    def check_references(self) -> None:
        """Check all foreign keys now, and not at the end of the transaction.

        Raises:
            MoveRefused: A row refers to a missing one.
        """

    def _refuse_rows(self, tables: Sequence[Table], expected: set[tuple[str, str]]) -> bool:
        """Return whether the target is empty, and False if it has only the rows of `migrate`.

        Raises:
            NotEmpty: It has other rows.
            MoveRefused: It has other tables, or tables of other migrations.
        """
        present = self.table_names()
        if not present:
            return True
        ours = {table.name for table in tables}
        other = sorted(present - ours - {"django_migrations"})
        advice = "Name an empty database. Nothing was changed."
        if other or "django_migrations" not in present:
            foreign = (other or sorted(present))[0]
            raise MoveRefused(f"{self.name} is not empty: it has the table {foreign}. {advice}")
        if self.migrations() != expected:
            raise MoveRefused(
                f"{self.name} has tables of other migrations than {self._other}. {advice}"
            )
        for name in sorted(ours - set(MADE_BY_MIGRATE)):
            if self.has_rows(name):
                raise NotEmpty(f"{self.name} is not empty: {name} has rows. {advice}")
        return False

    _other = "the database to move"

    def _migrate(self) -> None:
        """Create the tables. Raises `MoveRefused` if that is impossible here."""
        try:
            call_command(
                "migrate", database=self.alias, interactive=False, verbosity=0, skip_checks=True
            )
        except (CommandError, NotSupportedError) as error:
            raise MoveRefused(
                f"The tables cannot be created in {self.name}: {error} If the database is empty, "
                "create them with `vel migrate` and its URL as DATABASE_URL. Then try again."
            ) from error
        ContentType.objects.clear_cache()

    def _clear_made_rows(self) -> None:
        """Delete the rows that `migrate` has created: those of the source replace them."""
        with self.connection.cursor() as cursor:
            for name in MADE_BY_MIGRATE:
                cursor.execute(f"DELETE FROM {self.quoted(name)}")  # noqa: S608  # quoted

    def max_of(self, table: Table, column: str) -> int:
        with self.connection.cursor() as cursor:
            cursor.execute(
                f"SELECT max({self.quoted(column)}) FROM {self.quoted(table.name)}"  # noqa: S608
            )
            return int(cursor.fetchone()[0] or 0)
