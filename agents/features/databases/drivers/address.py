"""Addresses of databases: the allowed parts of a URL, and the databases that it must not reach.

An address is checked when a connection is defined and again when it is used, since the file at a
path can change. A check reads files and may look up a host; it makes no connection.
"""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from agents.features.databases.drivers.errors import MYSQL_DRIVER_MISSING, QueryFailed
from agents.features.databases.drivers.target import DatabaseTarget, UrlParts
from agents.kernel.lazy_modules import lazy_modules
from agents.settings import DataSettings

with lazy_modules:
    # Takes 0.2 s, which processes without databases should not pay.
    from sqlalchemy import exc
    from sqlalchemy.engine import url as engine_url


_SECRET_OPTIONS = ("password", "sslpassword")
_INSIDE_WORDS = 4
"""The minimum of characters of a secret that is also replaced inside words."""
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
    """Return the parts of the target's URL. Raises QueryFailed."""
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
    """Return `text` without the URL, its password, and the passwords among its options.

    A secret of fewer than `_INSIDE_WORDS` characters is only replaced where it is a word of its
    own: parts of other words would make the text unreadable, and show which letters are the secret.
    """
    url = parsed(target)
    secrets = {target.url, url.password or ""}
    for option in _SECRET_OPTIONS:
        value = url.query.get(option, "")
        secrets |= {value} if isinstance(value, str) else set(value)
    spelled = {form for secret in secrets for form in (secret, quote(secret), quote_plus(secret))}
    for secret in sorted(spelled - {""}, key=len, reverse=True):
        if len(secret) >= _INSIDE_WORDS:
            text = text.replace(secret, "***")
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text


with lazy_modules:
    # Takes 0.2 s, which commands without a database should not pay.
    from sqlalchemy import exc
    from sqlalchemy.engine import url as engine_url


SQLITE = "sqlite"
POSTGRESQL = "postgresql+psycopg"
DUCKDB = "duckdb"
MYSQL, MARIADB = "mysql+pymysql", "mariadb+pymysql"
_FILES = (SQLITE, DUCKDB)
"""Dialects with the path of a file on this host as their URL."""
_DRIVERS = {
    "sqlite": SQLITE,
    "sqlite+pysqlite": SQLITE,
    "postgres": POSTGRESQL,
    "postgresql": POSTGRESQL,
    "postgresql+psycopg": POSTGRESQL,
    "duckdb": DUCKDB,
    "mysql": MYSQL,
    "mysql+pymysql": MYSQL,
    "mariadb": MARIADB,
    "mariadb+pymysql": MARIADB,
}
_MYSQL_PARAMETERS = {
    # Only modes that never fall back to a connection without TLS.
    "sslmode": re.compile("disable|require|verify-ca|verify-full"),
    "connect_timeout": re.compile("[1-9]|[1-5][0-9]|60"),
}
_PARAMETERS = {
    "sslmode": re.compile("disable|allow|prefer|require|verify-ca|verify-full"),
    "connect_timeout": _MYSQL_PARAMETERS["connect_timeout"],
    "application_name": re.compile(r"[A-Za-z0-9 _.:-]{1,63}"),
}
"""The allowed parameters of a URL.

Others could disable the read-only session (`options`), change the server (`host`, `service`) or
read files of this host (`passfile`).
"""
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})|[0-9A-Fa-f:.]{2,45}")
_NAME = re.compile(r"[^\s\x00-\x1f\x7f/\\=?#'\"]{1,63}")
_USER = re.compile(r"[^\x00-\x1f\x7f]{1,63}")
_DEFAULT_PORT = 5432
_MYSQL_PORT = 3306


class AddressRefused(Exception):
    """Vel does not connect to the address.

    The message has the reason, but no secrets of the URL.
    """


@dataclass(frozen=True)
class Address:
    """The address of a connection, without its password. `port` is 0 for a file."""

    dialect: str
    host: str
    port: int
    database: str
    user: str

    def __str__(self) -> str:
        if not self.port:
            return f"{self.dialect} {self.database}"
        who = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.dialect} {who}{host}:{self.port}/{self.database}"


@sensitive_variables()
def address_of(url: str) -> Address:
    """Return the address of a stored URL. Raises `AddressRefused` if it cannot be read."""
    parts = _parsed(url)
    default = _MYSQL_PORT if parts.drivername in (MYSQL, MARIADB) else _DEFAULT_PORT
    port = 0 if parts.drivername in _FILES else parts.port or default
    dialect = parts.drivername.partition("+")[0]
    return Address(dialect, parts.host or "", port, parts.database or "", parts.username or "")


@sensitive_variables()
def from_here(url: str) -> str:
    """Return a program's URL, with the relative path of a file made absolute.

    The URL can be used in another directory. Other URLs are returned as they are.
    """
    for kind in _FILES:
        path = url.removeprefix(f"{kind}:///")
        if path != url and path and not path.startswith(("/", ":")):
            return f"{kind}:///{Path.cwd() / path}"
    return url


@sensitive_variables()
def checked_url(url: str, *, resolve: bool = False) -> str:
    """Return the URL for storage: with its driver, and a path without links.

    With `resolve`, the host is also looked up (which can take seconds) to detect other names of
    Vel's own PostgreSQL server. Raises `AddressRefused`.
    """
    parts = _parsed(url)
    if parts.drivername in _FILES:
        return _checked_file(parts)
    is_mysql = parts.drivername in (MYSQL, MARIADB)
    if is_mysql and find_spec("pymysql") is None:
        raise AddressRefused(MYSQL_DRIVER_MISSING)
    _check_parameters(parts.query, _MYSQL_PARAMETERS if is_mysql else _PARAMETERS)
    _check_server(parts)
    if not is_mysql:  # Vel's own database is never MySQL
        _refuse_own_server(parts, resolve=resolve)
    return parts.render_as_string(hide_password=False)


@sensitive_variables()
def _parsed(url: str) -> engine_url.URL:
    if len(url) > 2_000 or re.search(r"[\x00-\x1f\x7f]", url):
        raise AddressRefused("It is too long or contains control characters.")
    try:
        parts = engine_url.make_url(url)
    except (exc.ArgumentError, ValueError):
        # Their messages can contain the password, for example if it has an unquoted @ or : in it.
        raise AddressRefused(
            "It is not the URL of a database. Write postgresql://user:password@host:port/name or "
            "sqlite:////absolute/path (a character such as @ in a password is %40)."
        ) from None
    driver = _DRIVERS.get(parts.drivername)
    if driver is None:
        kind = parts.drivername if re.fullmatch("[a-z0-9+_]{1,40}", parts.drivername) else "this"
        raise AddressRefused(
            f"There is no driver for {kind}: PostgreSQL (postgresql://), MySQL (mysql://), MariaDB "
            "(mariadb://), SQLite (sqlite:////absolute/path) and DuckDB (duckdb:////absolute/path) "
            "can be connected to."
        )
    return parts.set(drivername=driver)


def _check_parameters(query: Mapping[str, Any], known: Mapping[str, re.Pattern[str]]) -> None:
    for name, value in query.items():
        form = known.get(name)
        if form is None:
            raise AddressRefused(
                f"One of its parameters is not allowed. Allowed parameters: {', '.join(known)}."
            )
        if not isinstance(value, str) or not form.fullmatch(value):
            raise AddressRefused(
                f"Its parameter {name} does not fit: sslmode is one of "
                f"{known['sslmode'].pattern.replace('|', ', ')}, "
                "connect_timeout 1 to 60 seconds, application_name a short name; each once."
            )


def _check_server(parts: engine_url.URL) -> None:
    if not parts.host or not _HOST.fullmatch(parts.host):
        raise AddressRefused(
            "Name exactly one host, for example postgresql://user:password@db.example.org/name."
        )
    if not parts.database or not _NAME.fullmatch(parts.database):
        raise AddressRefused("Name the database after the host, for example …@db.example.org/name.")
    if not parts.username or not _USER.fullmatch(parts.username):
        raise AddressRefused("Name the user: postgresql://user:password@host/name.")
    if parts.port is not None and not 0 < parts.port < 65_536:
        raise AddressRefused(
            "Its port is invalid. Write 1 to 65535, or omit the port for the default one."
        )


@sensitive_variables()
def _checked_file(parts: engine_url.URL) -> str:
    form = f"{parts.drivername}:////absolute/path"
    if parts.host or parts.username or parts.password or parts.query:
        kind = "A SQLite" if parts.drivername == SQLITE else "A DuckDB"
        raise AddressRefused(f"{kind} URL contains only a path: {form}.")
    if not parts.database or not parts.database.startswith("/"):
        raise AddressRefused(f"Name the file by its absolute path: {form}.")
    try:
        place = Path(parts.database).resolve(strict=True)
        found = place.stat()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links
        raise AddressRefused(
            "The file does not exist on this host, or this account cannot read it."
        ) from None
    if not stat.S_ISREG(found.st_mode):
        raise AddressRefused("Its path is not a file.")
    if place.is_relative_to(DataSettings.now().DATA_DIR.resolve()) or _is_own_file(place):
        raise AddressRefused("This is Vel's own database, or a file in Vel's data directory.")
    return parts.set(database=str(place)).render_as_string(hide_password=False)


def _is_own_file(place: Path) -> bool:
    """Return whether the path is a file of Vel's own database, also under another name."""
    for own in _own("sqlite3"):
        for name in (own["NAME"], *(f"{own['NAME']}{end}" for end in ("-wal", "-shm", "-journal"))):
            try:
                if os.path.samefile(place, name):
                    return True
            except OSError:
                continue  # it does not exist
    return False


def _refuse_own_server(parts: engine_url.URL, *, resolve: bool) -> None:
    host, port = str(parts.host).lower().rstrip("."), parts.port or _DEFAULT_PORT
    for own in _own("postgresql"):
        if str(own["NAME"]) != parts.database or int(own["PORT"] or _DEFAULT_PORT) != port:
            continue
        there = str(own["HOST"] or "localhost").lower().rstrip(".")
        there = "localhost" if there.startswith("/") else there  # a socket on this host
        if _same_host(host, there, resolve=resolve):
            raise AddressRefused("This is Vel's own database.")


def _same_host(one: str, other: str, *, resolve: bool) -> bool:
    """Return whether two names mean the same host. Only `resolve` looks them up."""
    if one == other or (is_local(one) and is_local(other)):
        return True
    return resolve and bool(_addresses(one) & _addresses(other))


def _addresses(host: str) -> set[str]:
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()
    return {form for address in found for form in canonical(address.partition("%")[0])}


def _own(engine: str) -> list[dict[str, Any]]:
    return [own for own in settings.DATABASES.values() if own["ENGINE"].endswith(engine)]


_LOCAL = "this machine"


def is_local(host: str) -> bool:
    """Return whether a name or address means this machine, without a look-up."""
    return host == "localhost" or _LOCAL in canonical(host)


def canonical(address: str) -> set[str]:
    """Return a set with the normal form of an address; empty for a host name.

    All addresses of this machine have the same form.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return set()
    found = getattr(found, "ipv4_mapped", None) or found
    return {_LOCAL if found.is_loopback or found.is_unspecified else str(found)}
