"""The parts of a Python program that a run needs, and whether this process has them."""

from __future__ import annotations

from typing import Any

from agents.models import Run
from agents.services.errors import Conflict
from agents.toolkits import bound


def toolkit_of(run: Run, fingerprint: str) -> Any:
    """Return the toolkit with this fingerprint of a run's agent; None if it is not here.

    It is an `agents.middleware.custom.toolkit.Toolkit`.
    """
    return bound(run.thread.root_id or run.thread_id) if fingerprint else None


def must_have_tools(run: Run) -> None:
    """Raise `Conflict` unless this process has the tools and other parts of the run."""
    fingerprint = run.spec.get("toolkit", "")
    if not fingerprint:
        return
    toolkit = toolkit_of(run, fingerprint)
    if toolkit is None:
        raise Conflict(
            "This run has tools or other code of the Python program that began it: go on "
            "there, with agent.resume(session_id).",
            code="toolkit_missing",
        )
    if not toolkit.has_parts_of(run.spec):
        raise Conflict(
            "This run began with code that the agent of this program lacks, for example "
            "in its options: make the agent with the same options, then resume.",
            code="toolkit_missing",
        )
