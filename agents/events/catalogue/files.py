"""Files: uploads, the workspace and changes in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NotRequired

from typing_extensions import TypedDict

from agents.events.event import OMITTED, Event, Omitted


class UploadedFile(TypedDict):
    """A file that a person sent with the message."""

    path: str
    """Its path in the sandbox."""
    bytes: int
    """Its size in bytes."""
    type: str
    """Its media type."""
    markdown: NotRequired[str]
    """The path of its text as Markdown. Missing if it does not exist."""
    shown: NotRequired[str]
    """`below` if the model sees it as a picture."""
    note: NotRequired[str]
    """A note for people and the model, for example that the file cannot be read."""


class OutsideChange(TypedDict):
    """A file that programs outside the sandbox run later."""

    path: str
    """Its path, relative to the directory. Bytes that are not UTF-8 are escaped."""
    what: str
    """`created`, `changed` or `committed`."""
    why: str
    """The kind of file, as `a build or test definition`."""


@dataclass(frozen=True, kw_only=True)
class UploadsReady(Event):
    """The files of the message are in the workspace, before the first model call."""

    type: ClassVar[str] = "uploads.ready"

    files: list[UploadedFile]
    """The first of the files."""
    count: int
    """How many files there are."""


@dataclass(frozen=True, kw_only=True)
class WorkspaceMoved(Event):
    """The files of the thread have been moved to another host."""

    type: ClassVar[str] = "workspace.moved"

    host: str
    """The name of the host that has the files now."""
    lost_host: str
    """The name of the host that failed with newer files. Empty if nothing was lost."""
    run: str | None
    """The id of the run that saved the files in this state. Null if none was saved."""
    turn: int | None
    """The turn of that run. Null if no state was saved."""
    snapshot: int | None
    """The id of the snapshot with this state. Null if no state was saved."""
    is_last_kept: bool
    """Whether this is the last state of the files that was kept."""
    missing: list[str]
    """Paths of files that could not be moved, as JSON texts: the first of them."""
    missing_count: int
    """How many files could not be moved."""
    mcp_state: str | Omitted = OMITTED
    """`kept` or `lost`: the stored data of MCP servers. Missing if they had stored nothing."""


@dataclass(frozen=True, kw_only=True)
class WorkspaceRunsOutside(Event):
    """The run changed files in a user's own directory that run outside the sandbox later.

    It comes before the event that ends the run. Review these files before you use the directory.
    """

    type: ClassVar[str] = "workspace.runs_outside"

    changes: list[OutsideChange]
    """At most 200 of the changes."""
    count: int
    """How many changes there are."""
    incomplete: list[str]
    """Places that could not be checked, each with the reason: at most 200."""


EVENTS = [UploadsReady, WorkspaceMoved, WorkspaceRunsOutside]
