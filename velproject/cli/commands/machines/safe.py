"""Checks before a server starts: errors of the system checks prevent the start."""

from __future__ import annotations

from django.core.checks import ERROR, run_checks

from agents.doors.cli.errors import FAILED, CliError
from agents.kernel.lazy_modules import lazy_modules
from velproject.checks.environment import UNKNOWN_VARIABLE
from velproject.checks.exposure import is_local, unsafe_exposure
from velproject.up import say

with lazy_modules:
    from sandbox.linux import probe  # not before the checks have passed


def refuse_unsafe(bind: str = "localhost") -> None:
    """Raise `CliError` with the first error of the system checks.

    `bind` is the address that the server listens on. Prints one line for each environment variable
    without effect.
    """
    found = [*run_checks(), *([] if is_local(bind) else unsafe_exposure([bind]))]
    for message in found:
        if message.level >= ERROR:
            raise CliError(f"{message.msg} {message.hint or ''} ({message.id})", exit_code=FAILED)
        if message.id == UNKNOWN_VARIABLE:
            say(f"{message.msg} ({message.id})")


def announce_sandbox() -> None:
    """Print why this machine cannot run the commands of agents, if it cannot."""
    for problem in probe.check_host().problems:
        say(f"no sandbox, so agents cannot run commands: {problem}")
