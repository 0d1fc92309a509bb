"""Run the code of a command: set up Django on the right database, then do the late imports."""

from __future__ import annotations

import gc
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import finish_imports, late_imports
from agents.doors.cli.options import persist_option

with late_imports:
    from agents.doors.cli.local_user import from_command_line
    from agents.doors.database_schema import ensure_schema
    from agents.telemetry.process import metrics_wanted

SHORT_SETTINGS = "velproject.cli.settings"
"""The project's settings without the parts for servers."""

Code = Callable[..., int | None]
"""The code of a command. Returns the exit code, or None for 0."""

_persist: list[Path] = []


def with_database(code: Code) -> Code:
    """Decorate a command: add `--persist`, and run the command with `database`."""

    @wraps(code)
    def command(*, persist: Path | None, **arguments: Any) -> int | None:
        with database(persist):
            return code(**arguments)

    return persist_option(command)


def with_settings(code: Code) -> Code:
    """Decorate a command that needs Django's settings, and no tables of the database."""

    @wraps(code)
    def command(**arguments: Any) -> int | None:
        with database(prepare=False):
            return code(**arguments)

    return command


@contextmanager
def database(
    persist: Path | None = None,
    *,
    log_level: str = "ERROR",
    prepare: bool = True,
    settings: str = SHORT_SETTINGS,
) -> Iterator[None]:
    """Set up Django, do the late imports of the command's file, and run the block.

    Use it instead of `with_database` in a command that does something first, such as checking
    which options go together.

    Args:
        persist: An SQLite file to use instead of DATABASE_URL.
        log_level: The default of VEL_LOG_LEVEL: on a terminal, lower levels would mix log lines
            with the answer.
        prepare: Create or migrate the tables of the database first.
        settings: The default of DJANGO_SETTINGS_MODULE.
    """
    if persist is not None:
        use_database_file(persist)
    os.environ.setdefault("VEL_LOG_LEVEL", log_level)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings)
    import_module("django").setup()
    finish_imports(__name__)
    if prepare:
        # `VEL_LOG_FORMAT=json` promises lines of JSON only.
        as_json = os.environ.get("VEL_LOG_FORMAT", "").strip().lower() == "json"
        ensure_schema(announce=not as_json)
    context = click.get_current_context(silent=True)
    if context is not None:
        finish_imports(context.command.callback.__module__)
    gc.freeze()  # imported modules stay
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    with from_command_line():
        try:
            yield
        finally:
            if metrics_wanted():
                import_module("agents.services.machines.processes").try_to_leave_counts()


def use_database_file(path: Path) -> None:
    """Let the settings read the SQLite file at `path` instead of DATABASE_URL.

    Raises `CliError` for a path that cannot be a file.
    """
    place = path.expanduser().absolute()
    try:
        quoted = quote(str(place))
    except UnicodeEncodeError:
        raise CliError(f"--persist {str(path)!a} is not UTF-8: use another path.") from None
    if place.is_dir():
        raise CliError(f"--persist {path} is a directory. Expected the path of a file.")
    if not place.parent.is_dir():
        raise CliError(
            f"--persist {path}: the directory {place.parent} does not exist. Create it first."
        )
    _persist[:] = [path]
    os.environ["DATABASE_URL"] = f"sqlite:///{quoted}"


def owns_database_file() -> bool:
    """Return whether the caller owns the file of --persist, and so everything in it."""
    if not _persist:
        return False
    place = _persist[0].expanduser().absolute()
    if str(import_module("django.db").connection.settings_dict["NAME"]) != str(place):
        return False
    return place.stat().st_uid == os.geteuid()


def again(command: str) -> str:
    """Return the command line `vel COMMAND` for a message, with the `--persist` of this call."""
    return f"vel {command}" + (f" --persist {shlex.quote(str(_persist[0]))}" if _persist else "")
