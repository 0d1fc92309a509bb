"""Typed reading of environment variables. A value that does not fit is an error with its name."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_MAIL_PORTS = {"smtp": 25, "submission": 587, "smtps": 465}


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def boolean(name: str, default: bool = False) -> bool:
    raw = os.environ.get(name)
    if raw is None:
        return default
    if raw.strip().lower() in _TRUE:
        return True
    if raw.strip().lower() in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name}={raw!r}: write 1 or 0.")


def integer(name: str, default: int, *, at_least: int = 0) -> int:
    raw = os.environ.get(name)
    if raw is None or not raw.strip():
        return default
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={raw!r}: write a whole number.") from None
    if value < at_least:
        raise ImproperlyConfigured(f"{name}={raw!r}: write a number of at least {at_least}.")
    return value


def items(name: str, default: list[str]) -> list[str]:
    """A comma-separated list; blanks around the items are dropped."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    return [item.strip() for item in raw.split(",") if item.strip()]


def directories(name: str) -> tuple[str, ...]:
    """A comma-separated list of absolute paths; `~` is the home of this account."""
    paths = [os.path.expanduser(item) for item in items(name, [])]
    for path in paths:
        if not os.path.isabs(path):
            raise ImproperlyConfigured(f"{name}: {path!r} is relative: write the absolute path.")
    return tuple(dict.fromkeys(os.path.normpath(path) for path in paths))


def data_dir() -> Path:
    """Where Vel keeps its database, key and workspaces.

    `VEL_DATA_DIR`, else /var/lib/vel for root (an account that Vel drops to could not walk into
    /root), else `vel` in the user's data directory.
    """
    given = text("VEL_DATA_DIR")
    if given:
        return Path(given).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/vel")
    base = text("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "vel"


def secret_key(directory: Path) -> str:
    """`VEL_SECRET_KEY`, else a key made once and kept in the data directory with mode 0600."""
    given = text("VEL_SECRET_KEY")
    if given:
        return given
    path = directory / "secret_key"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    make_private_directory(directory)
    # O_EXCL: of two processes that start at once, one writes the key and the other reads it.
    fresh = path.with_name(f"secret_key.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(50))
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(fresh)
    return path.read_text().strip()


def make_private_directory(directory: Path) -> None:
    """Create the data directory. Workspaces below it must be walked to, hence 0711 and not 0700."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o711)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data directory {directory} cannot be made ({error.strerror}): "
            "set VEL_DATA_DIR to a directory that this account may write."
        ) from error


def database(url: str, directory: Path) -> dict[str, Any]:
    """Django's DATABASES entry for `url`; an empty one is SQLite in the data directory.

    Accepts `sqlite:////absolute/path` and `postgresql://user:password@host:port/name?option=…`
    (a socket directory as `?host=/run/postgresql`).
    """
    if not url:
        return _sqlite(directory / "vel.sqlite3")
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return _sqlite(Path(unquote(parts.path[1:] if parts.path.startswith("//") else parts.path)))
    if parts.scheme in ("postgresql", "postgres"):
        options = dict(parse_qsl(parts.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": options.pop("host", None) or parts.hostname or "",
            "PORT": str(parts.port or options.pop("port", "")),
            "CONN_MAX_AGE": 0,
            "OPTIONS": options,
        }
    raise ImproperlyConfigured(
        f"DATABASE_URL begins with {parts.scheme!r}: write postgresql://user:password@host/name, "
        "sqlite:////absolute/path, or leave it empty for SQLite in the data directory."
    )


def mail_server(url: str) -> dict[str, Any]:
    """Django's EMAIL settings for `url`; an empty one is port 25 of this machine.

    Accepts `submission://user:password@host` (STARTTLS, port 587), `smtps://user:password@host`
    (TLS from the start, port 465) and, without a password, `smtp://host` (port 25).
    """
    parts = urlsplit(url or "smtp://localhost")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in _MAIL_PORTS or not parts.hostname or port == 0:
        raise ImproperlyConfigured(
            "EMAIL_URL is not understood: write submission://user:password@host, "
            "smtps://user:password@host or smtp://host, with :port after the host if need be."
        )
    if parts.scheme == "smtp" and parts.password:
        raise ImproperlyConfigured(
            "EMAIL_URL has a password, which smtp:// would send in the clear: write submission:// "
            "or smtps://."
        )
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or _MAIL_PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "submission",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }


def public_url(name: str, default: str) -> str:
    """The beginning of links to this server's pages, without a slash at its end."""
    url = text(name) or default
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"{name}={url!r}: write it as https://vel.example.org.")
    return url.rstrip("/")


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            # IMMEDIATE: a transaction that begins as a reader and turns writer cannot wait for
            # the lock and fails at once, whatever the timeout.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
