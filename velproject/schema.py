"""Bringing the database's tables up to date: shared with programs that have no project."""

from agents.harness.schema import (
    ensure_schema,
    is_development_database,
    missing_migrations,
    protect_database_file,
    unknown_migrations,
)

__all__ = [
    "ensure_schema",
    "is_development_database",
    "missing_migrations",
    "protect_database_file",
    "unknown_migrations",
]
