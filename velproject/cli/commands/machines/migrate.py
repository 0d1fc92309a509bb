"""The action of `vel migrate`."""

from __future__ import annotations

from velproject.schema import ensure_schema


def migrate() -> None:
    print("The database is up to date now." if ensure_schema() else "The database is up to date.")
