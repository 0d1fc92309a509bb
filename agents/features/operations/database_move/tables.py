"""The tables to copy: their columns, and an order in which foreign keys refer to earlier ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.doors.cli.terminal import one_line
from agents.features.operations.database_move.errors import MoveRefused
from agents.features.operations.database_move.values import (
    KINDS,
    OF_FIELDS,
    BadValue,
    Kind,
    Limits,
    digest_part,
)

MADE_BY_MIGRATE = ("auth_permission", "django_content_type")
"""`migrate` fills these tables. A target with rows in no other tables counts as fresh."""
SEVERAL = 500
FEW = 10
"""The rows of a batch, and of a batch of a table that stores files."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, with the kind of its values."""

    name: str
    kind: Kind
    field: models.Field[Any, Any]

    def limits(self, target: BaseDatabaseWrapper) -> Limits:
        """Return the limits of this column in the target."""
        nul = not target.features.prohibits_null_characters_in_text_exception
        if self.kind.name == "integer":
            return Limits(*(None, *target.ops.integer_field_range(self.field.get_internal_type())))
        if isinstance(self.field, models.DecimalField):
            return Limits(digits=self.field.max_digits, places=self.field.decimal_places)
        enforced = self.field.max_length if isinstance(self.field, models.CharField) else None
        return Limits(length=None if nul else enforced, nul=nul)


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is copied. `key` has the positions of the primary key in `columns`."""

    name: str
    model: type[models.Model]
    columns: tuple[Column, ...]
    key: tuple[int, ...]

    @property
    def batch(self) -> int:
        """The number of rows that are in memory together."""
        return FEW if any(each.kind.name == "binary" for each in self.columns) else SEVERAL

    @property
    def counter(self) -> str | None:
        """The column whose values the database counts, if there is one."""
        auto = next(
            (f for f in self.model._meta.local_fields if isinstance(f, models.AutoField)), None
        )
        return auto.column if auto is not None else None

    def row_name(self, row: tuple[Any, ...]) -> str:
        """Return the table and the primary key of a row, for messages."""
        key = ", ".join(
            f"{self.columns[at].name} {one_line(_shown(row[at]), 60)}" for at in self.key
        )
        return f"{self.name}, {key}"


@dataclass(frozen=True, slots=True)
class Content:
    """The number of rows of a table, and the hash of all their values."""

    rows: int
    digest: str


class Hasher:
    """Computes the `Content` of a table from its rows, in the order of the primary key."""

    def __init__(self, table: Table) -> None:
        self._kinds = [column.kind for column in table.columns]
        self._hash = hashlib.sha256()
        self._rows = 0

    def add(self, row: tuple[Any, ...]) -> None:
        """Add the next row."""
        self._hash.update(b"".join(map(digest_part, self._kinds, row)))
        self._rows += 1

    def content(self) -> Content:
        """Return the content of all added rows."""
        return Content(self._rows, self._hash.hexdigest())


def tables() -> list[Table]:
    """Return the tables of all installed apps.

    A table comes after those to which all of its rows refer. A reference that can be empty may be
    to a later table.

    Raises:
        MoveRefused: A column has a type that cannot be moved.
    """
    found = {
        model._meta.db_table: model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy and not model._meta.swapped
    }
    return [_table(model) for model in _in_order(found)]


def _in_order(found: dict[str, type[models.Model]]) -> Iterator[type[models.Model]]:
    """Yield the models after those that all of their rows refer to.

    Only references that can be empty form circles. Both databases check them at the end.
    """
    seen: set[str] = set()

    def visit(model: type[models.Model]) -> Iterator[type[models.Model]]:
        name = model._meta.db_table
        if name in seen or name not in found:
            return
        seen.add(name)
        for field in model._meta.local_concrete_fields:
            if isinstance(field, models.ForeignKey) and not field.null:
                yield from visit(field.remote_field.model)
        yield model

    for name in sorted(found):
        yield from visit(found[name])


def _table(model: type[models.Model]) -> Table:
    meta = model._meta
    fields = [field for field in meta.local_concrete_fields if not field.generated]
    columns = tuple(_column(field) for field in fields)
    key = tuple(fields.index(field) for field in meta.pk_fields)
    return Table(meta.db_table, model, columns, key)


def _column(field: models.Field[Any, Any]) -> Column:
    column = str(field.column)
    while isinstance(field, models.ForeignKey):
        field = field.target_field
    kind = OF_FIELDS.get(field.get_internal_type())
    if kind is None:
        raise MoveRefused(
            f"{field.model._meta.label}.{field.name} has the type {type(field).__name__}, which "
            "this command cannot move. Remove the feature, or move the database with other tools."
        )
    return Column(column, KINDS[kind], field)


def check_row(table: Table, row: tuple[Any, ...], limits: list[Limits]) -> Iterator[str]:
    """Yield a message for each value of the row that the target cannot store."""
    for column, value, limit in zip(table.columns, row, limits, strict=True):
        try:
            if isinstance(value, BadValue):
                raise value
            if value is not None:
                column.kind.check(value, limit)
        except BadValue as problem:
            yield f"{table.row_name(row)}: {column.name} {problem}"


def _shown(value: Any) -> str:
    return "(unreadable)" if isinstance(value, BadValue) else str(value)
