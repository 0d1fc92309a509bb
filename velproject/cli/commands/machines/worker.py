"""The action of `vel worker`."""

from __future__ import annotations

from velproject.child import run_workers
from velproject.cli.commands.machines.safe import refuse_unsafe


def worker() -> None:
    """One cluster in the foreground, until SIGTERM or Ctrl-C."""
    refuse_unsafe()
    run_workers()
