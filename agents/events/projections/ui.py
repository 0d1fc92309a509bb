"""The supported versions of the AI SDK, and whole logs in their format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agents.events.projections.ui_message import (
    Approval,
    Chunk,
    Dialect,
    UiMessage,
    approval_data,
    call_error,
)
from agents.events.projections.ui_stream import UiStream
from agents.events.stored import StoredEvent


class Version6:
    """See `Dialect`."""

    version = 6
    stops_for_approvals = True

    def approval_requested(self, approval: Approval) -> list[Chunk]:
        return [
            {
                "type": "tool-approval-request",
                "approvalId": approval.id,
                "toolCallId": approval.call_id,
            }
        ]

    def approval_decided(self, approval: Approval) -> list[Chunk]:
        return []  # the protocol has no chunk for it: the result contains the decision

    def call_denied(self, call_id: str, reason: str, approval: Approval | None) -> list[Chunk]:
        if approval is None:  # denied by the policy, without a request
            return [call_error(call_id, reason)]
        return [{"type": "tool-output-denied", "toolCallId": call_id}]


class Version5:
    """The chunks of version 5 of the AI SDK, see `ui_message.Dialect`."""

    version = 5
    stops_for_approvals = False

    def approval_requested(self, approval: Approval) -> list[Chunk]:
        return [approval_data(approval)]

    def approval_decided(self, approval: Approval) -> list[Chunk]:
        return [approval_data(approval)]

    def call_denied(self, call_id: str, reason: str, approval: Approval | None) -> list[Chunk]:
        return [call_error(call_id, reason)]


class Version7(Version6):
    """See `Dialect`."""

    version = 7

    def approval_decided(self, approval: Approval) -> list[Chunk]:
        chunk: Chunk = {
            "type": "tool-approval-response",
            "approvalId": approval.id,
            "approved": approval.approved,
        }
        return [{**chunk, "reason": approval.reason} if approval.reason else chunk]


DIALECTS: dict[int, Dialect] = {each.version: each for each in (Version5(), Version6(), Version7())}
DEFAULT_VERSION = 6
"""The newest one whose chunks the clients of all later versions accept, too."""

_USER_AGENT = re.compile(r"(?:^|\s)ai(?:-sdk)?/(\d{1,3})\.")


def version_of(user_agent: str) -> int:
    """Return the version in the `User-Agent` of a client, such as `ai-sdk/7.0.1`, or the default.

    The SDK's own functions send one, but the transport of `useChat` does not.
    """
    found = _USER_AGENT.search(user_agent)
    version = int(found[1]) if found else DEFAULT_VERSION
    return version if version in DIALECTS else DEFAULT_VERSION


def ui_chunks(run_id: str, events: Iterable[StoredEvent], version: int) -> Iterator[Chunk]:
    """Yield the chunks of a run's events, as one response."""
    stream = UiStream(run_id, DIALECTS[version])
    for event in events:
        yield from stream.feed(event)
    yield from stream.end()


def ui_message(run_id: str, events: Iterable[StoredEvent], version: int) -> UiMessage:
    """Return the assistant message that a client has built after it has read `events`."""
    message = UiMessage(run_id)
    for chunk in ui_chunks(run_id, events, version):
        message.add(chunk)
    message.settle()
    return message
