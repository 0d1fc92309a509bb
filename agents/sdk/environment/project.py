"""Set up the Django project of this process's agents: an existing one, or Vel's own.

A process has one database. In a project it is that of the project. In a script it is the SQLite
file that the first agent names, or a temporary one that is deleted when the process ends.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.db import connections

from agents.features.installed import installed_features
from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.settings import declarations, forget, read_environment
from agents.sdk.environment.places import (
    data_dir,
    make_private_directory,
    secret_key,
)
from agents.sdk.environment.template import begin_with_template, keep_as_template
from agents.sdk.errors import SetupError
from agents.settings.data import sqlite_database
from sandbox.directories.removal import remove_tree

with lazy_modules:
    # Import late, because this module needs Django's apps.
    from agents.checks import settings as checks_of_settings
    from agents.checks import tools
    from agents.doors import database_schema
    from agents.services.agent_definitions import settings_places


_APPS = (
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_q",
    "agents",
)
_SQLITE = b"SQLite format 3\x00"
"""The first bytes of a database file. A new file is empty."""
_KEYS = frozenset({"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"})

_lock = threading.Lock()
_ready = False
_own: Path | None = None
"""The database file, if this module has configured Django's settings."""
_is_throw_away = False


def prepare(
    persistence_path: str | Path | None = None,
    *,
    api_key: str | None = None,
    provider: str = "",
    database: bool = True,
) -> None:
    """Set up Django and the database. Raises `SetupError`.

    This blocks, so do not call it on an event loop.

    Args:
        persistence_path: The SQLite file. None: the database that the process has, or a temporary
            one.
        api_key: The API key for `provider`, in a process without a Django project.
        provider: The provider of the key, by default that of the settings.
        database: Whether to prepare the database, too, and not only the code.
    """
    global _ready
    with _lock:
        try:
            if not settings.configured and not os.environ.get("DJANGO_SETTINGS_MODULE"):
                _configure(persistence_path)
            else:
                _check_path(persistence_path)
            _use_key(api_key, provider or getattr(settings, "VEL", {}).get("PROVIDER", ""))
            if _ready:
                return
            if not apps.ready:
                django.setup()
            _check_apps()
            _check_settings()
            if not database:
                return
            _prepare_database()
        except (ImproperlyConfigured, CommandError) as error:
            # The environment is invalid, or this version cannot use the database.
            raise SetupError(str(error)) from error
        _ready = True


def is_own() -> bool:
    """Return whether `prepare` has configured Django, because the process has no Django project."""
    return _own is not None


def _prepare_database() -> None:
    """Migrate Vel's own database, or check that the database of the project is migrated."""
    if _own is not None:
        is_new = not _own.exists() and not begin_with_template(_own)
        database_schema.ensure_schema(announce=False)
        if is_new:
            keep_as_template(_own)
        return
    database_schema.refuse_development_database()
    database_schema.refuse_for_features()
    if missing := database_schema.missing_migrations():
        raise SetupError(
            f"The project's database lacks {len(missing)} migrations (such as {missing[0]}): "
            "run `python manage.py migrate` first."
        )


def _configure(persistence_path: str | Path | None) -> None:
    global _own, _is_throw_away
    own_apps = [*_APPS[_APPS.index("agents") :], *installed_features()]
    declared = declarations(own_apps)
    of_environment = read_environment(one for one in declared if one.IN_PROGRAMS)
    if persistence_path is None:
        # Accounts of sandboxes must pass through this directory to the workspaces.
        directory = Path(tempfile.mkdtemp(prefix="vel-"))
        directory.chmod(0o711)
        atexit.register(_throw_away, directory, os.getpid())
        file = directory / "vel.sqlite3"
    else:
        file = Path(persistence_path).expanduser().absolute()
        _check_file(file)
        directory = data_dir()
        make_private_directory(directory)
    _is_throw_away, _own = persistence_path is None, file
    of_environment["VEL"]["DATA_DIR"] = directory
    settings.configure(**_settings(file, directory), **of_environment)


def _settings(file: Path, directory: Path) -> dict[str, Any]:
    return {
        "SECRET_KEY": secret_key(directory),
        "INSTALLED_APPS": [*_APPS, *installed_features()],
        "DATABASES": {"default": sqlite_database(file)},
        "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
        "AUTHENTICATION_BACKENDS": [
            "django.contrib.auth.backends.ModelBackend",
            "agents.auth_backends.AgentApproverBackend",
        ],
        "USE_TZ": True,
        "TIME_ZONE": "UTC",
        "Q_CLUSTER": {"name": "vel", "orm": "default", "timeout": 60, "retry": 120},
        "LOGGING_CONFIG": None,  # the program configures its logging
    }


def _check_file(file: Path) -> None:
    if file.is_dir():
        raise SetupError(f"persistence_path {file} is a directory. Expected the path of a file.")
    if not file.parent.is_dir():
        raise SetupError(f"persistence_path {file}: create the directory {file.parent} first.")
    try:
        with file.open("rb") as stream:
            start = stream.read(len(_SQLITE))
    except FileNotFoundError:
        return
    except OSError as error:
        raise SetupError(f"persistence_path {file} cannot be read: {error.strerror}.") from error
    if start not in (_SQLITE, b""):
        raise SetupError(f"persistence_path {file} is not a SQLite database: name another file.")


def _check_path(persistence_path: str | Path | None) -> None:
    """Raise `SetupError` if a further agent names another database file. It may name none."""
    if persistence_path is None:
        return
    wanted = Path(persistence_path).expanduser().absolute()
    default = settings.DATABASES.get("default", {})
    name = str(default.get("NAME", ""))
    if "sqlite" in str(default.get("ENGINE")) and os.path.realpath(name) == os.path.realpath(
        wanted
    ):
        return
    if _own is None:
        raise SetupError(
            f"persistence_path={str(wanted)!r}: inside a Django project its own database is used; "
            "leave persistence_path out."
        )
    if _is_throw_away:
        raise SetupError(
            f"persistence_path={str(wanted)!r}: agents of this process already use a temporary "
            "database, and a process has only one database. Give the path to the first agent that "
            "you use."
        )
    raise SetupError(
        f"persistence_path={str(wanted)!r}: agents of this process already use {_own}, and a "
        "process has only one database. Give all agents of a process the same path (each name has "
        "its own sessions), or run this agent in another process."
    )


def _use_key(api_key: str | None, provider: str) -> None:
    if api_key is None:
        return
    name = f"{(provider or 'anthropic').partition('-')[0].upper()}_API_KEY"
    if _own is None:
        raise SetupError(f'Set the API key in the project\'s settings: VEL = {{"{name}": …}}.')
    if name not in _KEYS:
        raise SetupError(f"The provider {provider!r} takes no API key.")
    known = settings.VEL.get(name, "")
    if known == api_key:
        return
    if _ready and known:
        raise SetupError("Agents of this process already use another API key.")
    settings.VEL = {**settings.VEL, name: api_key}
    forget()


def _check_apps() -> None:
    missing = [] if apps.is_installed("agents") else ["agents"]
    if missing:
        raise SetupError(
            f"The project's INSTALLED_APPS lack {', '.join(missing)}: add "
            f"{', '.join(_APPS[2:])}, then migrate (docs/guides/python.md)."
        )


def _check_settings() -> None:
    """Raise `SetupError` if code, models or directories in the settings cannot be used.

    `manage.py` and `vel up` run these checks when they start. A program has no such moment.
    """
    for check in (checks_of_settings.check_vel_settings, tools.check_tools):
        for problem in check(None):
            raise SetupError(" ".join(filter(None, (problem.msg, problem.hint))))
    settings_places.check_own_process()


def _throw_away(directory: Path, maker: int) -> None:
    if os.getpid() != maker:  # a fork of the process
        return
    connections.close_all()
    remove_tree(directory)
