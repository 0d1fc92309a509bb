"""Convert the URL of Vel's own database to Django's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def database(url: str, directory: Path, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Return Django's DATABASES entry for `url`; for an empty URL, SQLite in `directory`.

    Accepts `sqlite:////absolute/path` and `postgresql://user:password@host:port/name?option=…` (a
    socket directory as `?host=/run/postgresql`). `name` is the name of the URL in errors.

    Raises:
        ImproperlyConfigured: The URL is invalid.
    """
    if not url:
        return sqlite_database(directory / "vel.sqlite3")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} has an invalid host or port. Expected postgresql://user:password@host/name, "
            "with special characters of the password as %XX."
        ) from None
    if parts.scheme == "sqlite":
        return sqlite_database(
            Path(unquote(parts.path[1:] if parts.path.startswith("//") else parts.path))
        )
    if parts.scheme in ("postgresql", "postgres"):
        options = dict(parse_qsl(parts.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": options.pop("host", None) or parts.hostname or "",
            "PORT": str(port or options.pop("port", "")),
            "CONN_MAX_AGE": 0,
            "OPTIONS": options,
        }
    raise ImproperlyConfigured(
        f"{name} starts with {parts.scheme!r}. Expected "
        "postgresql://user:password@host/name, sqlite:////absolute/path, or nothing "
        "for SQLite in the data directory."
    )


def sqlite_database(path: Path) -> dict[str, Any]:
    """Return Django's DATABASES entry for a SQLite file."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            # With IMMEDIATE, a transaction waits for the lock at its start. A transaction that
            # starts as a reader and then writes cannot wait, and fails immediately with any
            # timeout.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
