"""Random rows of every model stay equal on PostgreSQL and back on SQLite."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from django.db import models
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.features.operations.database_move.tables import Column, Table, tables
from tests.velproject.command import Vel

pytestmark = pytest.mark.postgresql

TEXTS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001  # as SQLite stores
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(TEXTS, max_size=20),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(TEXTS), parts, max_size=3),
    max_leaves=8,
)
ATTEMPTS = 20


def of_kind(column: Column) -> st.SearchStrategy[Any]:
    """Return values of a column, as SQLite stores them."""
    field = column.field
    match column.kind.name:
        case "text":
            length = min(field.max_length or 60, 60)
            return st.text(TEXTS, min_size=1, max_size=length)
        case "integer":
            return st.integers(*_range(field))
        case "boolean":
            return st.integers(0, 1)
        case "float":
            return st.floats(allow_nan=False)
        case "decimal":
            assert isinstance(field, models.DecimalField)
            most = 10**field.max_digits - 1
            scaled = st.integers(0, most).map(Decimal)
            return scaled.map(lambda value: str(value.scaleb(-field.decimal_places)))
        case "datetime":
            return MOMENTS.map(str)
        case "date":
            return st.dates().map(str)
        case "binary":
            return st.binary(max_size=2_000)
        case "json":
            return JSON.map(json.dumps)
    raise AssertionError(column.kind.name)


def _range(field: models.Field[Any, Any]) -> tuple[int, int]:
    kind = field.get_internal_type()
    if "Auto" in kind:
        return 1, 2**31 - 1
    bits = 15 if "Small" in kind else 63 if "Big" in kind else 31
    return (0 if "Positive" in kind else -(2**bits)), 2**bits - 1


def referred(table: Table, column: Column) -> tuple[str, str] | None:
    """Return the table and the column to which a foreign key refers."""
    for field in table.model._meta.local_concrete_fields:
        if field.column == column.name and isinstance(field, models.ForeignKey):
            return field.remote_field.model._meta.db_table, field.target_field.column
    return None


def insert(
    database: sqlite3.Connection,
    table: Table,
    keys: dict[tuple[str, str], Any],
    data: st.DataObject,
) -> bool:
    """Insert a random row, and return whether the constraints of the table accept it."""
    values = {}
    for column in table.columns:
        field = next(f for f in table.model._meta.local_concrete_fields if f.column == column.name)
        target = referred(table, column)
        if target is not None:
            values[column.name] = keys.get(target)
        elif field.null and data.draw(st.booleans()):
            values[column.name] = None
        else:
            choices = [value for value, _ in field.flatchoices] if field.choices else []
            values[column.name] = data.draw(
                st.sampled_from(choices) if choices else of_kind(column)
            )
    names = ", ".join(f'"{name}"' for name in values)
    places = ", ".join("?" for _ in values)
    try:
        database.execute(
            f'INSERT INTO "{table.name}" ({names}) VALUES ({places})', list(values.values())
        )
    except sqlite3.IntegrityError:
        return False
    keys.update({(table.name, name): value for name, value in values.items()})
    return True


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_rows_of_every_model_stay_equal(
    vel: Vel, prepared: str, data: st.DataObject
) -> None:
    file = vel.data / "random.sqlite3"
    for path in vel.data.glob("*.sqlite3-*"):
        path.unlink()
    back = vel.data / "back.sqlite3"
    back.unlink(missing_ok=True)
    shutil.copyfile(vel.data / "vel.sqlite3", file)
    left_out = fill(file, data)
    url = f"sqlite:///{file}"
    there = vel("database", "move", "--to", prepared, "--json", DATABASE_URL=url)
    try:
        assert there.returncode == 0, there.stderr
        again = vel(
            "database", "move", "--to", f"sqlite:///{back}", "--json", DATABASE_URL=prepared
        )
        assert again.returncode == 0, again.stderr
    finally:
        empty(prepared)
    contents = json.loads(there.stdout)["contents"]
    assert json.loads(again.stdout)["contents"] == contents
    filled = {name for name, content in contents.items() if content["rows"]}
    assert len(filled) + len(left_out) >= len(contents)
    assert len(left_out) <= len(contents) // 3


def fill(file: Any, data: st.DataObject) -> list[str]:
    """Insert a row into each table; return the tables whose constraints refused all attempts."""
    left_out = []
    keys: dict[tuple[str, str], Any] = {}
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM auth_permission")
        database.execute("DELETE FROM django_content_type")
        for table in tables():
            if not any(insert(database, table, keys, data) for _ in range(ATTEMPTS)):
                left_out.append(table.name)
    return left_out


def empty(url: str) -> None:
    with psycopg.connect(url) as database:
        names = ", ".join(f'"{table.name}"' for table in tables())
        database.execute(f"TRUNCATE {names}")
