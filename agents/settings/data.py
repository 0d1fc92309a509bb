"""Where Vel keeps rows and files, and how much of the disk it leaves free."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from agents.kernel.settings import About, Bytes, FeatureSettings


class DataSettings(FeatureSettings):
    """Data directory"""

    DATA_DIR: Annotated[
        Path,
        About(
            default="`/var/lib/vel` for root, else `$XDG_DATA_HOME/vel` or `~/.local/share/vel`; "
            "in a project of your own always `/var/lib/vel`"
        ),
    ] = Path("/var/lib/vel")
    """The directory of the database, the secret key, workspaces and toolboxes. The accounts that
    sandboxes run as must be able to enter it."""

    @property
    def workspaces(self) -> Path:
        return self.DATA_DIR / "workspaces"

    @property
    def archives(self) -> Path:
        return self.DATA_DIR / "archives"

    @property
    def snapshots(self) -> Path:
        return self.DATA_DIR / "snapshots"

    @property
    def set_aside(self) -> Path:
        """The directory of workspaces that another machine continued while this one was away."""
        return self.DATA_DIR / "set-aside"

    @property
    def synced_copies(self) -> Path:
        """Copies of other machines' workspaces, which people can view."""
        return self.DATA_DIR / "mirrors"

    @property
    def toolboxes(self) -> Path:
        return self.DATA_DIR / "toolboxes"


class DiskSettings(FeatureSettings):
    """Disk space"""

    IN_PROGRAMS = True

    RESERVE_BYTES: Bytes = 100_000_000
    """Free space on the disk of the data directory that is [reserved](limits.md#a-full-disk) for
    active runs. With less, no new run starts. 0: no reserve."""

    @property
    def sandbox_reserve(self) -> int:
        """The free space in bytes at which file tools and commands stop writing.

        It is more than the reserve, because a command can write for a moment before it is killed.
        """
        return 2 * self.RESERVE_BYTES


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
