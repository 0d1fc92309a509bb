"""A target's URL: the kind of its database, and its secrets."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.target import DatabaseTarget, UrlParts
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Takes 0.2 s, which processes without databases should not pay.
    from sqlalchemy import exc
    from sqlalchemy.engine import url as engine_url


_SECRET_OPTIONS = ("password", "sslpassword")
_DIALECTS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql",
    "postgresql": "postgresql",
    "postgresql+psycopg": "postgresql",
    "duckdb": "duckdb",
    "mysql": "mysql",
    "mysql+pymysql": "mysql",
    "mariadb": "mysql",
    "mariadb+pymysql": "mysql",
}


def parsed(target: DatabaseTarget) -> UrlParts:
    """The parts of the target's URL. Raises QueryFailed."""
    if target.parts is not None:
        return target.parts
    try:
        url = engine_url.make_url(target.url)
    except (exc.ArgumentError, ValueError):
        # The library's message quotes the URL.
        raise QueryFailed(f"The URL of {target.name} cannot be read.", "configuration") from None
    return UrlParts(
        url.drivername, url.username, url.password, url.host, url.port, url.database, url.query
    )


def dialect_of(target: DatabaseTarget) -> str:
    """Return `sqlite`, `postgresql`, `duckdb` or `mysql` (MariaDB too), else raise QueryFailed."""
    driver = parsed(target).drivername
    if driver not in _DIALECTS:
        raise QueryFailed(
            f"{target.name} is a {driver} database: only PostgreSQL, SQLite, DuckDB and "
            "MySQL can be queried.",
            "configuration",
        )
    return _DIALECTS[driver]


def without_secrets(text: str, target: DatabaseTarget) -> str:
    """Return `text` without the URL, its password, and the passwords among its options."""
    url = parsed(target)
    secrets = {target.url, url.password or ""}
    for option in _SECRET_OPTIONS:
        value = url.query.get(option, "")
        secrets |= {value} if isinstance(value, str) else set(value)
    spelled = {form for secret in secrets for form in (secret, quote(secret), quote_plus(secret))}
    for secret in sorted(spelled - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
