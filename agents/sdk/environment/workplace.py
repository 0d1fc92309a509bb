"""Use the caller's own directory as a workspace."""

from __future__ import annotations

import os
from pathlib import Path

from agents.sdk.config import DEFAULT_WORKSPACE, DeepAgentConfig
from agents.sdk.environment.project import is_own
from agents.sdk.errors import SetupError
from agents.settings import DataSettings
from sandbox.errors import SandboxSetupError
from sandbox.host_paths import writable_directory
from sandbox.own_directory.rules import FileRules
from sandbox.toolboxes.find import hold_toolbox
from sandbox.toolboxes.toolbox import ToolboxError
from sandbox.workspace import own_directory_account

NOBODY = 65534
DEFAULT_OUTPUTS = "./outputs"


def file_rules(config: DeepAgentConfig, workspace: str) -> FileRules:
    """Return the rules on which files of the directory the agent may change. Raises `SetupError`.

    The agent may not change the skills that the program names in the directory.
    """
    top = Path(workspace).resolve()
    skills = map(Path, config.skill_directories() if config.skill_dirs else ())
    inside = [place.relative_to(top).as_posix() for place in skills if top in place.parents]
    try:
        rules = FileRules(tuple(config.sandbox_allow_write), tuple(config.sandbox_protect))
        return rules.with_protected(inside)
    except SandboxSetupError as error:
        raise SetupError(f"sandbox_allow_write, sandbox_protect: {error}") from error


def outputs_directory(given: str | Path | None) -> Path | None:
    """Return the absolute path of the directory for copies of agents' files; None: make no copies.

    If `given` is None, it is `DEFAULT_OUTPUTS`, or no copies in a process with a Django project.
    The directory is created when there are files. Raises `SetupError` if it is not a directory.
    """
    if given is None:
        if not is_own():
            return None
        given = DEFAULT_OUTPUTS
    place = Path(os.path.abspath(Path(given).expanduser()))
    if place.exists() and not place.is_dir():
        raise SetupError(f"outputs_dir: {place} is not a directory. Name another one.")
    return place


def check_toolbox(name: str) -> None:
    """Raise `SetupError` if commands cannot use the toolbox `name`."""
    try:
        hold_toolbox(DataSettings.now().toolboxes, name).release()
    except ToolboxError as error:
        raise SetupError(f"toolbox: {error}") from error


def workspace_directory(given: str | Path) -> Path:
    """Return the absolute path of the working directory `given`, which must exist.

    Only the default directory is created. If root creates it, it belongs to an account without
    rights, because commands never run as root. Raises `SetupError` if commands cannot or must not
    work in the directory, before a model is called.
    """
    place = Path(given).expanduser().resolve()
    try:
        writable_directory(place)
        if not place.exists():
            if str(given) != DEFAULT_WORKSPACE:
                raise SetupError(
                    f"sandbox_working_dir: {place} does not exist. Make it, or name another one."
                )
            place.mkdir()
            if os.geteuid() == 0:
                os.chown(place, NOBODY, NOBODY)
        own_directory_account(place)
    except (SandboxSetupError, OSError) as error:
        raise SetupError(f"sandbox_working_dir: {given}: {error}") from error
    return place
