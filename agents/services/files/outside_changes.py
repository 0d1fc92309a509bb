"""A run's changes of files in a user's own directory that programs outside the sandbox execute.

The state before is stored when the run first opens the directory, and deleted when the report at
its end is stored. Subagents work in the directory of their parent, and its report includes their
changes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from agents.events.catalogue.files import WorkspaceRunsOutside
from agents.models import Run
from agents.services.files.workspaces import WorkspaceLocation, workspace_location
from agents.settings import DataSettings
from sandbox.errors import SandboxSetupError
from sandbox.own_directory.history import HistoryUnknown, committed_changes
from sandbox.own_directory.inventory import (
    Change,
    Inventory,
    changes_since,
    keep_baseline,
    read_baseline,
)
from sandbox.own_directory.scan import take_inventory
from sandbox.workspace import own_directory_account

logger = logging.getLogger(__name__)

MOST = 200
"""The limit of changes, and of unchecked places, in one report."""


@dataclass(frozen=True, slots=True)
class OutsideChanges:
    """The report of a run. `incomplete` are places that were not checked, each with the reason."""

    changes: list[Change]
    incomplete: list[str]

    def __bool__(self) -> bool:
        return bool(self.changes or self.incomplete)

    def event(self) -> WorkspaceRunsOutside:
        """Return the event with the report. Bytes that are not UTF-8 are escaped."""
        return WorkspaceRunsOutside(
            changes=[
                {"path": _shown(change.path), "what": change.what, "why": _shown(change.why)}
                for change in self.changes[:MOST]
            ],
            count=len(self.changes),
            incomplete=[_shown(place) for place in self.incomplete[:MOST]],
        )


def keep_state_before(location: WorkspaceLocation, found: Inventory) -> None:
    """Store the state that the report will compare with. Raises OSError."""
    keep_baseline(_baseline(location), found)


def outside_changes(location: WorkspaceLocation) -> OutsideChanges | None:
    """Return the changes since the run opened its own directory. Blocks.

    None if the thread has no own directory, or if the run has not opened it. A directory or a
    stored state that cannot be read is reported as not checked.
    """
    if location.own_directory is None:
        return None
    try:
        before = read_baseline(_baseline(location))
        if before is None:
            return None
        after = take_inventory(location.own_directory, location.rules)
    except (OSError, ValueError) as error:
        logger.warning("the own directory cannot be compared: %s", error)
        return OutsideChanges([], [f".: {error}"])
    changes, incomplete = changes_since(before, after), list(after.incomplete)
    try:
        own = location.own_directory
        changes += committed_changes(own, own_directory_account(own), before, after)
    except (HistoryUnknown, SandboxSetupError) as error:
        incomplete.append(f"new commits: {error}")
    return OutsideChanges(changes, incomplete)


def unreported_changes(run: Run) -> OutsideChanges | None:
    """Return the run's changes so far; None if the event of its end has reported them. Blocks."""
    if run.has_ended and run.events.filter(type=WorkspaceRunsOutside.type).exists():
        return None  # the state before may not be deleted yet
    return outside_changes(workspace_location(run.thread))


def forget_state_before(location: WorkspaceLocation) -> None:
    """Delete the state before, once the report is stored. Raises OSError."""
    if location.own_directory is not None:
        _baseline(location).unlink(missing_ok=True)


def _baseline(location: WorkspaceLocation) -> Path:
    first = location.family or location.thread_id
    return DataSettings.now().snapshots / first / "own_directory.json"


def _shown(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")
