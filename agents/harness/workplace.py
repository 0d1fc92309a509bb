"""The caller's own directory as a workspace."""

from __future__ import annotations

import os
from pathlib import Path

from agents.harness.config import DeepAgentConfig
from agents.harness.errors import SetupError
from sandbox.errors import SandboxSetupError
from sandbox.host_paths import writable_directory
from sandbox.own_directory.rules import FileRules
from sandbox.workspace import own_directory_account

NOBODY = 65534


def file_rules(config: DeepAgentConfig) -> FileRules:
    """What of the directory the agent may change. Raises `SetupError`."""
    try:
        return FileRules(tuple(config.sandbox_allow_write), tuple(config.sandbox_protect))
    except SandboxSetupError as error:
        raise SetupError(f"sandbox_allow_write, sandbox_protect: {error}") from error


def workspace_directory(given: str | Path) -> Path:
    """The absolute path of the directory, made if it is not there. Raises `SetupError`.

    What commands could not work in, or must not, is refused here, before a model is paid. One that
    root makes here is given to an account without rights, since commands never run as root.
    """
    place = Path(given).expanduser().resolve()
    try:
        writable_directory(place)
        if not place.exists():
            place.mkdir(parents=True)
            if os.geteuid() == 0:
                os.chown(place, NOBODY, NOBODY)
        own_directory_account(place)
    except (SandboxSetupError, OSError) as error:
        raise SetupError(f"The working directory {given}: {error}") from error
    return place
