"""The Vercel AI SDK's UI message stream: the common parts of its versions.

One run is one assistant message with the id of the run. Chunks have only fields and types of the
first release of each version: its clients reject a stream with unknown ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agents.events.catalogue.approvals import ApprovalDecided, ApprovalExpired, ApprovalRequested
from agents.events.catalogue.messages import (
    ReasoningCompleted,
    ReasoningDelta,
    ReasoningStarted,
    StepReset,
    StepStarted,
    TextCompleted,
    TextDelta,
    TextStarted,
)
from agents.events.catalogue.runs import (
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunSuspended,
)
from agents.events.catalogue.subagents import SubagentFinished, SubagentStarted
from agents.events.catalogue.tool_calls import (
    ToolCalled,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolInputDelta,
    ToolInputStarted,
    ToolProgress,
    ToolRejected,
)
from agents.events.projections.ui_message import (
    Approval,
    Chunk,
    Dialect,
    OpenParts,
    approval_data,
    call_error,
)
from agents.events.stored import StoredEvent
from agents.kernel.features import collect

VERSION_HEADER = "x-vercel-ai-ui-message-stream"
DONE = "[DONE]"
INTERRUPTED = "The model call is made again; this call of it was not made."


@dataclass(slots=True)
class UiStream:
    """Converts the events of one run, fed in their order, to chunks. Subagents become data parts.

    The same events give the same chunks. `end` returns the run's end separately, since a failed run
    may continue, but a client stops at the end. `finish_response` and `begin_response` are for the
    endpoint, which ends a response when the person must answer, and continues in another one.
    """

    run_id: str
    dialect: Dialect
    open_calls: dict[str, str] = field(default_factory=dict)
    """Names of called tools without a result, by call.

    A stream that starts in the middle of a run gets the earlier open calls here.
    """
    _ending: list[Chunk] = field(default_factory=list)
    _begun: bool = False
    _in_step: bool = False
    _suspended: bool = False
    _parts: OpenParts = field(default_factory=OpenParts)
    _typed: dict[str, str] = field(default_factory=dict)
    """Names of tools whose input is incomplete, by call."""
    _approvals: dict[str, Approval] = field(default_factory=dict)
    _of_calls: dict[str, list[Approval]] = field(default_factory=dict)
    """Requests about calls of the message, by call, in their order."""

    @property
    def awaits_answer(self) -> bool:
        """Return whether the run is parked for approvals that the client itself answers."""
        return (
            self.dialect.stops_for_approvals
            and self._suspended
            and any(not each.decision and each.of_message for each in self._approvals.values())
        )

    def feed(self, event: StoredEvent) -> list[Chunk]:
        """Return the chunks for `event`; none for events without an equivalent in the protocol."""
        data = json.loads(event.data_json)
        if event.run_id != self.run_id:
            return self._of_subagent(event.run_id, event.type, data)
        translate = _TRANSLATIONS.get(event.type)
        if translate is not None:
            chunks = translate(self, data)
        else:
            of_feature = _chunks_of_features().get(event.type)
            chunks = [] if of_feature is None else of_feature(data)
        return self.begin_response() + chunks

    def begin_response(self) -> list[Chunk]:
        """Return `start` with the version of the protocol, once in each response."""
        if self._begun:
            return []
        self._begun = True
        metadata = {"aiSdkVersion": self.dialect.version}
        return [{"type": "start", "messageId": self.run_id, "messageMetadata": metadata}]

    def finish_response(self) -> list[Chunk]:
        """Return the end of a response whose run continues in the next response."""
        self._begun = False
        return [*self._parts.close(), *self._finish_step(), {"type": "finish"}]

    def end(self) -> list[Chunk]:
        """Return the last chunks, after all events."""
        return self._ending

    # Methods for the events, in the order of a run's life.

    def _step_started(self, data: dict[str, Any]) -> list[Chunk]:
        chunks = [*self._parts.close(), *self._finish_step(), {"type": "start-step"}]
        self._in_step = True
        return chunks

    def _step_reset(self, data: dict[str, Any]) -> list[Chunk]:
        chunks = self._parts.close()
        for call_id, tool in self._typed.items():
            chunks.append(_input(call_id, tool, {}))
            chunks.append(call_error(call_id, INTERRUPTED))
        self._typed.clear()
        reset = {"step": data["step"], "reason": data["reason"]}
        return [*chunks, {"type": "data-step-reset", "data": reset}]

    def _input_started(self, data: dict[str, Any]) -> list[Chunk]:
        self._typed[data["call_id"]] = data["tool"]
        return [
            {"type": "tool-input-start", "toolCallId": data["call_id"], "toolName": data["tool"]}
        ]

    def _input_delta(self, data: dict[str, Any]) -> list[Chunk]:
        if data["call_id"] not in self._typed:
            return []
        call_id, text = data["call_id"], data["text"]
        return [{"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": text}]

    def _called(self, data: dict[str, Any]) -> list[Chunk]:
        self._typed.pop(data["call_id"], None)
        self.open_calls[data["call_id"]] = data["tool"]
        return [_input(data["call_id"], data["tool"], data["input"])]

    def _progress(self, data: dict[str, Any]) -> list[Chunk]:
        told = {"toolCallId": data["call_id"], "text": data["text"]}
        return [{"type": "data-tool-progress", "data": told, "transient": True}]

    def _rejected(self, data: dict[str, Any]) -> list[Chunk]:
        self._typed.pop(data["call_id"], None)
        called = _input(data["call_id"], data["tool"], data["input"])
        return [called, call_error(data["call_id"], data["message"])]

    def _completed(self, data: dict[str, Any]) -> list[Chunk]:
        if self.open_calls.pop(data["call_id"], None) is None:
            return []
        output = data["output"]
        return [{"type": "tool-output-available", "toolCallId": data["call_id"], "output": output}]

    def _failed(self, data: dict[str, Any]) -> list[Chunk]:
        if self.open_calls.pop(data["call_id"], None) is None:
            return []
        return [call_error(data["call_id"], data["message"])]

    def _denied(self, data: dict[str, Any]) -> list[Chunk]:
        if self.open_calls.pop(data["call_id"], None) is None:
            return []
        asked = self._of_calls.get(data["call_id"])
        return self.dialect.call_denied(
            data["call_id"], data["reason"] or "The call was denied.", asked[-1] if asked else None
        )

    def _requested(self, data: dict[str, Any]) -> list[Chunk]:
        approval = Approval(self.run_id, data, of_message=data["call_id"] in self.open_calls)
        self._approvals[approval.id] = approval
        if approval.of_message:
            asked = self._of_calls.setdefault(approval.call_id, [])
            if asked:
                # A new request about the call: the earlier one can no longer be decided.
                asked[-1].decision = asked[-1].decision or "superseded"
            asked.append(approval)
            return self.dialect.approval_requested(approval)
        return [approval_data(approval)]

    def _decided(self, data: dict[str, Any]) -> list[Chunk]:
        approval = self._approvals.get(data["approval_id"])
        if approval is None:
            return []
        approval.decision = data.get("decision", "expired")
        approval.reason, approval.by = data.get("reason", ""), data.get("by", "")
        if approval.of_message:
            return self.dialect.approval_decided(approval)
        return [approval_data(approval)]

    def _run_suspended(self, data: dict[str, Any]) -> list[Chunk]:
        self._suspended = data["reason"] == "approval"
        return []

    def _run_resumed(self, data: dict[str, Any]) -> list[Chunk]:
        self._suspended = False
        self._ending = []
        return []

    def _run_completed(self, data: dict[str, Any]) -> list[Chunk]:
        metadata = {"status": "completed", "finishReason": data["finish_reason"]}
        known = {name: data.get(name) for name in ("usage", "cost", "structured_output")}
        metadata |= {name: value for name, value in known.items() if value is not None}
        self._ending = [{"type": "finish", "messageMetadata": metadata}]
        return [*self._parts.close(), *self._finish_step()]

    def _run_failed(self, data: dict[str, Any]) -> list[Chunk]:
        error = {"code": data["code"], "message": data["message"]}
        self._ending = [
            _metadata({"status": "failed", "error": error}),
            {"type": "error", "errorText": data["message"]},
            {"type": "finish"},
        ]
        return self._break_off("The run failed before this call had a result.")

    def _run_cancelled(self, data: dict[str, Any]) -> list[Chunk]:
        cancelled = {"status": "cancelled", "reason": data["reason"]}
        self._ending = [_metadata(cancelled), {"type": "abort"}]
        return self._break_off("The run was cancelled.")

    def _subagent(self, data: dict[str, Any]) -> list[Chunk]:
        told = {
            "runId": data["child_run_id"],
            "name": data["name"],
            "toolCallId": data["call_id"],
            "status": data.get("status", "started"),
        }
        return [{"type": "data-subagent", "id": data["child_run_id"], "data": told}]

    def _of_subagent(self, run_id: str, kind: str, data: dict[str, Any]) -> list[Chunk]:
        """Return a subagent's approval request as a data part, for a decision over REST."""
        if kind == ApprovalRequested.type:
            self._approvals[data["approval_id"]] = Approval(run_id, data, of_message=False)
        elif kind in (ApprovalDecided.type, ApprovalExpired.type):
            return self.begin_response() + self._decided(data)
        else:
            return []
        return [*self.begin_response(), approval_data(self._approvals[data["approval_id"]])]

    def _break_off(self, why: str) -> list[Chunk]:
        """Close all open parts and calls at the end of a run without an answer."""
        chunks = self._parts.close()
        chunks += [_input(call_id, tool, {}) for call_id, tool in self._typed.items()]
        chunks += [call_error(call_id, why) for call_id in [*self._typed, *self.open_calls]]
        self._typed.clear()
        self.open_calls.clear()
        return chunks + self._finish_step()

    def _finish_step(self) -> list[Chunk]:
        # Results of a step's calls can follow its end, and belong to it.
        chunks: list[Chunk] = [{"type": "finish-step"}] if self._in_step else []
        self._in_step = False
        return chunks


def _metadata(metadata: dict[str, Any]) -> Chunk:
    return {"type": "message-metadata", "messageMetadata": metadata}


def _input(call_id: str, tool: str, given: object) -> Chunk:
    return {
        "type": "tool-input-available",
        "toolCallId": call_id,
        "toolName": tool,
        "input": given,
    }


@lru_cache(maxsize=1)
def _chunks_of_features() -> dict[str, Callable[[dict[str, Any]], list[Chunk]]]:
    """Return the lists `projections.UI_CHUNKS` of features: functions by event type."""
    return {kind: make for _, (kind, make) in collect("projections", "UI_CHUNKS")}


_TRANSLATIONS: dict[str, Callable[[UiStream, dict[str, Any]], list[Chunk]]] = {
    StepStarted.type: UiStream._step_started,
    StepReset.type: UiStream._step_reset,
    TextStarted.type: lambda stream, data: stream._parts.started("text", data),
    TextDelta.type: lambda stream, data: stream._parts.delta("text", data),
    TextCompleted.type: lambda stream, data: stream._parts.completed("text", data),
    ReasoningStarted.type: lambda stream, data: stream._parts.started("reasoning", data),
    ReasoningDelta.type: lambda stream, data: stream._parts.delta("reasoning", data),
    ReasoningCompleted.type: lambda stream, data: stream._parts.completed("reasoning", data),
    ToolInputStarted.type: UiStream._input_started,
    ToolInputDelta.type: UiStream._input_delta,
    ToolCalled.type: UiStream._called,
    ToolProgress.type: UiStream._progress,
    ToolRejected.type: UiStream._rejected,
    ToolCompleted.type: UiStream._completed,
    ToolFailed.type: UiStream._failed,
    ToolDenied.type: UiStream._denied,
    ApprovalRequested.type: UiStream._requested,
    ApprovalDecided.type: UiStream._decided,
    ApprovalExpired.type: UiStream._decided,
    SubagentStarted.type: UiStream._subagent,
    SubagentFinished.type: UiStream._subagent,
    RunSuspended.type: UiStream._run_suspended,
    RunResumed.type: UiStream._run_resumed,
    RunCompleted.type: UiStream._run_completed,
    RunFailed.type: UiStream._run_failed,
    RunCancelled.type: UiStream._run_cancelled,
}
