"""From a parsed command to its action: set up Django on the right database, then import."""

from __future__ import annotations

import gc
import os
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from velproject.cli.errors import CliError

SETTINGS = "velproject.settings"
SHORT_SETTINGS = "velproject.cli.settings"

_persist: list[Path] = []


def use_database_file(path: Path) -> None:
    """Let the settings read the SQLite file at `path` instead of DATABASE_URL."""
    place = path.expanduser().absolute()
    try:
        quoted = quote(str(place))
    except UnicodeEncodeError:
        raise CliError(f"--persist {str(path)!a} is not UTF-8: use another path.") from None
    if place.is_dir():
        raise CliError(f"--persist {path} is a directory: name a file in it.")
    if not place.parent.is_dir():
        raise CliError(f"--persist {path}: there is no directory {place.parent}; make it first.")
    _persist[:] = [path]
    os.environ["DATABASE_URL"] = f"sqlite:///{quoted}"


def again(command: str) -> str:
    """A command to suggest to the person, on the same database."""
    return f"vel {command}" + (f" --persist {shlex.quote(str(_persist[0]))}" if _persist else "")


def perform(
    action: str,
    *,
    persist: Path | None = None,
    log_level: str = "ERROR",
    prepare: bool = True,
    settings: str = SHORT_SETTINGS,
    **arguments: Any,
) -> int:
    """Run `module:function` of `velproject.cli.actions` and return its exit code.

    `log_level` is for what the engine logs, unless VEL_LOG_LEVEL says otherwise: on a terminal its
    lines would stand among the answer. With `prepare` the database's tables are made or brought
    up to date first.

    Actions are imported here and not at the top of the command's module, because Django must be
    set up first and that takes 0.4 s, which help and usage errors should not cost.
    """
    if persist is not None:
        use_database_file(persist)
    os.environ.setdefault("VEL_LOG_LEVEL", log_level)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings)
    import_module("django").setup()
    if prepare:
        # A line of its own would be none of those that `VEL_LOG_FORMAT=json` promises.
        as_json = os.environ.get("VEL_LOG_FORMAT", "").strip().lower() == "json"
        import_module("velproject.schema").ensure_schema(announce=not as_json)
    module, _, function = action.partition(":")
    perform_action = getattr(import_module(f"velproject.cli.actions.{module}"), function)
    origin = import_module("velproject.cli.actions.origin").from_command_line
    gc.freeze()  # what is imported stays
    gc.enable()
    with origin():
        try:
            result = perform_action(**arguments)
        finally:
            if import_module("agents.telemetry.wanted").metrics_wanted():
                import_module("agents.services.processes").try_to_leave_counts()
    return int(result or 0)
