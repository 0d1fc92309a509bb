"""Random rows of every model stay equal on PostgreSQL and back on SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.db import models

from agents.features.operations.database_move.tables import Table, tables
from tests.velproject.command import Vel

pytestmark = pytest.mark.postgresql

LETTERS = "aZ09 _-'\"\\\t\n\r%&<>{}ßéЖ中🌱\u200b\u2028\x01\x7f\ufffd"
ATTEMPTS = 60
ROWS = 4
SPECIAL = [1e300, -1.5e-300, 1e16, 0.1, -0.0, 2**53 + 1, -(2**63), 10**30, 1.0]
STRICT = {"memory_memoryfile", "memory_memoryrevision", "memory_memoryeditrequest"}
"""Their paths and users must fit each other. `test_move` has real rows of them."""
QUIET = (
    "UPDATE agents_serverprocess SET seen_at = 1.5",
    "UPDATE agents_machine SET seen_at = 1.5",
    "UPDATE agents_runclock SET lease_until = NULL",
    # PostgreSQL makes an index of these words, and refuses empty ones.
    "UPDATE skills_app_skillindexentry SET tokens = 'abc def'",
)
"""Statements that undo values that Vel never stores together with a move."""


def text(random: Random, length: int | None) -> str:
    most = min(length or 300, 300)
    return "".join(random.choices(LETTERS, k=random.randint(1, most)))


def value_in_json(random: Random, depth: int = 0) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: None,
        lambda: random.random() < 0.5,
        lambda: random.choice(SPECIAL),
        lambda: random.uniform(-1e9, 1e9),
        lambda: text(random, 20),
    ]
    if depth < 3:
        kinds += [
            lambda: [value_in_json(random, depth + 1) for _ in range(random.randint(0, 3))],
            lambda: {
                text(random, 8): value_in_json(random, depth + 1)
                for _ in range(random.randint(0, 3))
            },
        ]
    return random.choice(kinds)()


def stored(random: Random, field: models.Field[Any, Any], kind: str) -> Any:
    """Return a value of the field, as SQLite stores it."""
    if field.choices:
        return random.choice([value for value, _ in field.flatchoices])
    if kind == "decimal":
        assert isinstance(field, models.DecimalField)
        digits = random.randint(0, 10**field.max_digits - 1)
        return str(Decimal(digits).scaleb(-field.decimal_places))
    moment = datetime(1, 1, 2) + timedelta(microseconds=random.randint(0, 3 * 10**17))  # noqa: DTZ001
    ways: dict[str, Callable[[], Any]] = {
        "text": lambda: text(random, field.max_length),
        "integer": lambda: random.choice([*_ends(field), random.randint(*_ends(field))]),
        "boolean": lambda: random.randint(0, 1),
        "float": lambda: random.choice([*(float(each) for each in SPECIAL), float("inf")]),
        "datetime": lambda: str(moment),
        "date": lambda: str(moment.date()),
        "binary": lambda: random.randbytes(random.randint(0, 5_000)),
        "json": lambda: json.dumps(value_in_json(random)),
    }
    return ways[kind]()


def _ends(field: models.Field[Any, Any]) -> tuple[int, int]:
    kind = field.get_internal_type()
    if "Auto" in kind:
        return 1, 2**31 - 2
    bits = 15 if "Small" in kind else 63 if "Big" in kind else 31
    return (0 if "Positive" in kind else -(2**bits)), 2**bits - 1


def insert(
    database: sqlite3.Connection, table: Table, keys: dict[tuple[str, str], Any], random: Random
) -> bool:
    """Insert a random row, and return whether the constraints of the table accept it."""
    values = {}
    for column in table.columns:
        meta = table.model._meta
        field = next(each for each in meta.local_concrete_fields if each.column == column.name)
        if isinstance(field, models.ForeignKey):
            target = (field.remote_field.model._meta.db_table, field.target_field.column)
            values[column.name] = keys.get(target)
        elif field.null and random.random() < 0.4:
            values[column.name] = None
        else:
            values[column.name] = stored(random, field, column.kind.name)
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


def fill(file: Path, random: Random) -> list[str]:
    """Insert rows into each table. Return the tables whose constraints refused all attempts."""
    left_out = []
    keys: dict[tuple[str, str], Any] = {}
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM auth_permission")
        database.execute("DELETE FROM django_content_type")
        for table in tables():
            accepted = 0
            for _ in range(ATTEMPTS):
                accepted += insert(database, table, keys, random)
                if accepted == ROWS:
                    break
            if not accepted:
                left_out.append(table.name)
        for statement in QUIET:
            database.execute(statement)
    return left_out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_rows_of_every_model_stay_equal(vel: Vel, prepared: str, seed: int) -> None:
    left_out = fill(vel.data / "vel.sqlite3", Random(seed))
    there = vel("database", "move", "--to", prepared, "--json")
    assert there.returncode == 0, there.stderr
    new = f"sqlite:///{vel.data}/back.sqlite3"
    again = vel("database", "move", "--to", new, "--json", DATABASE_URL=prepared)
    assert again.returncode == 0, again.stderr
    contents = json.loads(there.stdout)["contents"]
    assert json.loads(again.stdout)["contents"] == contents
    assert {name for name, content in contents.items() if not content["rows"]} == set(left_out)
    assert set(left_out) <= STRICT
