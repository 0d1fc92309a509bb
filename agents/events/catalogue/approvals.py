"""Approvals: requests to people, and their decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from agents.events.event import OMITTED, Event, Omitted


@dataclass(frozen=True, kw_only=True)
class ApprovalRequested(Event):
    """A request for approval is stored. The run parks, or is about to."""

    type: ClassVar[str] = "approval.requested"

    approval_id: str
    """The id of the request."""
    call_id: str | None
    """The call that the request is about. Null for requests about the run."""
    tool: str
    """The name of the tool. For requests about the run: their kind."""
    input: Any
    """The proposed input, cut as in `tool.called`. The request itself has all of it. Empty for a
    request that only the owner of the run may see."""
    kind: str
    """`tool`, or the kind of a feature, for example `memory` (an edit of the agent's memory) or
    `budget`."""
    prompt: str
    """Why a person is asked, or an empty text."""
    digest: str
    """SHA-256 of the proposed call, in hexadecimal. A decision sends it back."""
    allowed_decisions: list[str]
    """Some of `approve`, `edit`, `reject` and `respond`."""
    approvals_needed: int
    """How many people must approve: 1 or 2."""
    expires_at: str | None
    """When the request expires, in ISO 8601. Null if it does not."""
    path: str | Omitted = OMITTED
    """With the kind `memory`: the path of the file, or `me/` for a file of one person."""
    operation: str | Omitted = OMITTED
    """With the kind `memory`: `write`, `append` or `delete`."""


@dataclass(frozen=True, kw_only=True)
class ApprovalSeconded(Event):
    """The first of two people has approved. The request stays pending."""

    type: ClassVar[str] = "approval.seconded"

    approval_id: str
    """The id of the request."""
    by: str
    """The user name of the first approver."""
    still_needed: int
    """How many more people must approve."""


@dataclass(frozen=True, kw_only=True)
class ApprovalDecided(Event):
    """A request is decided. With `reject` or `respond`, its call ends in the same transaction."""

    type: ClassVar[str] = "approval.decided"

    approval_id: str
    """The id of the request."""
    call_id: str | None
    """The call that the request is about. Null for requests about the run."""
    kind: str
    """`tool`, or the kind of a feature, for example `memory` or `budget`."""
    decision: str
    """`approve`, `edit`, `reject` or `respond`."""
    reason: str
    """The reason or answer that the person gave, or an empty text. Empty for a request that only
    the owner of the run may see."""
    by: str
    """The user name of the person who decided."""
    path: str | Omitted = OMITTED
    """With the kind `memory`: the path of the file, or `me/` for a file of one person."""
    grant_id: str | Omitted = OMITTED
    """The id of the grant that the person gave with the decision. Missing if it does not exist."""


@dataclass(frozen=True, kw_only=True)
class ApprovalExpired(Event):
    """The request was not decided in time. Its call, if any, ends in the same transaction."""

    type: ClassVar[str] = "approval.expired"

    approval_id: str
    """The id of the request."""


EVENTS = [ApprovalRequested, ApprovalSeconded, ApprovalDecided, ApprovalExpired]
