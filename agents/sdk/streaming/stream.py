"""The events of a stream, and the modes of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from agents.events.catalogue.approvals import ApprovalDecided, ApprovalRequested
from agents.events.catalogue.files import WorkspaceRunsOutside
from agents.events.catalogue.messages import (
    ReasoningDelta,
    StepCompleted,
    StepReset,
    TextCompleted,
    TextDelta,
)
from agents.events.catalogue.runs import RunCancelled, RunCompleted, RunFailed, RunStarted
from agents.events.catalogue.subagents import SubagentFinished, SubagentStarted
from agents.events.catalogue.tool_calls import (
    ToolCalled,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolInputStarted,
    ToolProgress,
    ToolRejected,
)
from agents.events.projections.ui import DEFAULT_VERSION
from agents.kernel.features import collect
from agents.sdk.errors import SetupError

LogEvent = dict[str, Any]
"""A row of the event log: `run_id, seq, type, ts, data` (docs/reference/rest-api.md)."""


class StreamMode(StrEnum):
    """The form of the items that `run_stream` yields.

    >>> async def texts(agent, message):
    ...     return [text async for text, _ in agent.run_stream(message, mode=StreamMode.MESSAGES)]
    >>> asyncio.run(texts(create_deep_agent(scripted_model(["Hello."]), sandbox=False), "Hi"))
    ['Hello.']
    """

    EVENTS = "events"
    """`StreamEvent`s: text as it arrives, calls and their results, requests, the end."""
    VALUES = "values"
    """The whole state after each step: `messages`, `todos`, `status`, `response`, `interrupts`."""
    UPDATES = "updates"
    """The changes of each step by their source: `{"agent": …}`, `{"tools": …}`, …"""
    MESSAGES = "messages"
    """Pairs `(text, metadata)` of the model's text."""
    UI_PARTS = "ui_parts"
    """The parts of the Vercel AI SDK's UI message stream, in the default version of the REST API.
    """
    UI_PARTS_5 = "ui_parts_5"
    """The same parts in version 5."""
    UI_PARTS_6 = "ui_parts_6"
    UI_PARTS_7 = "ui_parts_7"
    DEBUG = "debug"
    """The rows of the event log, with those of subagents."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise SetupError(f"mode must be {' or '.join(cls)}, got {value!r:.80}.")

    @property
    def ai_sdk_version(self) -> int | None:
        """Return the version of the AI SDK whose parts the mode has, None for other modes."""
        name, _, version = self.value.partition("ui_parts")
        if name:
            return None
        return int(version[1:]) if version else DEFAULT_VERSION

    @classmethod
    def of_ai_sdk(cls, version: int) -> StreamMode:
        """Return the mode for a version of the AI SDK. Raises `ValueError` for an unknown one."""
        return cls(f"ui_parts_{version}")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream.

    `type` is start, token, reasoning, step, reset, tool_call, tool_progress, tool_result,
    interrupt, decision, todos, message, artifact, subagent_start, subagent_end, runs_outside, end,
    error or cancelled. `content` is its text. `node_id` is "agent", or the name of the subagent.
    `metadata` has, by type, tool_name, tool_call_id, input, is_error; approval_id, session_id,
    kind, allowed_decisions, digest; changes, count, incomplete (docs/guides/own-directory.md);
    usage, cost, structured_output; code.

    >>> async def types(agent, message):
    ...     return [event.type async for event in agent.run_stream(message)]
    >>> asyncio.run(types(create_deep_agent(scripted_model(["Hello."]), sandbox=False), "Hi"))
    ['start', 'token', 'step', 'end']
    """

    type: str
    content: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    node_id: str = "agent"

    def to_dict(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "content": self.content,
            "metadata": self.metadata,
            "node_id": self.node_id,
        }


class EventReader:
    """Converts the log of a run and its subagents to stream events, in order.

    Of a subagent, only the start, the end and the requests are converted.
    """

    def __init__(
        self, run_id: str, session_id: str, tools: Mapping[tuple[str, str], str] | None = None
    ) -> None:
        """Create a reader.

        `tools` has the tools of earlier calls without a result, by run and call.
        """
        self._run_id = run_id
        self._session_id = session_id
        self._tools = dict(tools or {})
        self._told_parts: set[str] = set()
        self._names: dict[str, str] = {}

    def read(self, event: LogEvent) -> Iterator[StreamEvent]:
        data, kind = event["data"], event["type"]
        run_id = event["run_id"]
        if kind in (ToolCalled.type, ToolInputStarted.type) and data.get("tool"):
            self._tools[run_id, data["call_id"]] = data["tool"]
        if run_id != self._run_id:
            if kind == ApprovalRequested.type:
                yield self._interrupt(run_id, data)
            return
        make = _MAKERS.get(kind) or _makers_of_features().get(kind)
        if kind in (TextDelta.type, TextCompleted.type):
            yield from self._text(kind, data)
        elif kind == ApprovalRequested.type:
            yield self._interrupt(run_id, data)
        elif kind in _CALLS:
            if kind == ToolRejected.type:  # a rejected call has no other event
                yield self._call(ToolCalled.type, run_id, data)
            yield self._call(kind, run_id, data)
        elif kind in (SubagentStarted.type, SubagentFinished.type):
            yield self._subagent(kind, data)
        elif make is not None:
            yield make(data)

    def _text(self, kind: str, data: dict[str, Any]) -> Iterator[StreamEvent]:
        part = data["part_id"]
        if kind == TextCompleted.type and part in self._told_parts:
            return  # the pieces contained it
        self._told_parts.add(part)
        if data.get("text"):
            yield StreamEvent("token", data["text"], {"part_id": part})

    def _call(self, kind: str, run_id: str, data: dict[str, Any]) -> StreamEvent:
        name = self._tools.get((run_id, data["call_id"]), data.get("tool", ""))
        metadata = {"tool_name": name, "tool_call_id": data["call_id"]}
        if kind == ToolCalled.type:
            return StreamEvent("tool_call", name, {**metadata, "input": data["input"]})
        if kind == ToolProgress.type:
            return StreamEvent("tool_progress", data.get("text", ""), metadata)
        failed = kind != ToolCompleted.type
        text = next((data[key] for key in ("output", "message", "reason") if key in data), "")
        code = data.get("code") or ("denied" if kind == ToolDenied.type else "")
        more = {"is_error": failed, **({"code": code} if failed else {})}
        return StreamEvent("tool_result", str(text), {**metadata, **more})

    def _interrupt(self, run_id: str, data: dict[str, Any]) -> StreamEvent:
        metadata = {
            "session_id": self._session_id,
            "approval_id": data["approval_id"],
            "kind": data.get("kind", "tool"),
            "tool_name": data.get("tool", ""),
            "tool_call_id": data.get("call_id"),
            "input": data.get("input"),
            "allowed_decisions": data.get("allowed_decisions", []),
            "digest": data.get("digest", ""),
            "expires_at": data.get("expires_at"),
        }
        node = self._names.get(run_id, "agent")
        return StreamEvent("interrupt", str(data.get("prompt") or ""), metadata, node)

    def _subagent(self, kind: str, data: dict[str, Any]) -> StreamEvent:
        child, name = data["child_run_id"], data.get("name", "")
        self._names[child] = name or self._names.get(child, "subagent")
        is_start = kind == SubagentStarted.type
        return StreamEvent(
            "subagent_start" if is_start else "subagent_end",
            str(data.get("status", "")),
            {"run_id": child, "subagent": name, "tool_call_id": data.get("call_id")},
            self._names[child],
        )


_CALLS = frozenset(
    {
        ToolCalled.type,
        ToolProgress.type,
        ToolCompleted.type,
        ToolFailed.type,
        ToolDenied.type,
        ToolRejected.type,
    }
)


def _event(kind: str, text: str = "", *keys: str) -> Callable[[dict[str, Any]], StreamEvent]:
    def make(data: dict[str, Any]) -> StreamEvent:
        return StreamEvent(
            kind, str(data.get(text) or ""), {key: data[key] for key in keys if key in data}
        )

    return make


@lru_cache(maxsize=1)
def _makers_of_features() -> dict[str, Callable[[dict[str, Any]], StreamEvent]]:
    """Return functions that create stream events, by event type, from `projections.STREAM_EVENTS`.

    An entry in these lists of the features has the event type, the kind of the stream event, and
    the fields of its text and of its metadata.
    """
    return {
        type_: _event(kind, text, *keys)
        for _, (type_, kind, text, keys) in collect("projections", "STREAM_EVENTS")
    }


_MAKERS: dict[str, Callable[[dict[str, Any]], StreamEvent]] = {
    RunStarted.type: _event("start", "", "thread_id", "agent", "provider", "model"),
    ReasoningDelta.type: _event("reasoning", "text", "part_id"),
    StepCompleted.type: _event("step", "finish_reason", "step", "usage"),
    StepReset.type: _event("reset", "reason", "step"),
    WorkspaceRunsOutside.type: _event("runs_outside", "", "changes", "count", "incomplete"),
    ApprovalDecided.type: _event("decision", "decision", "approval_id", "call_id", "by"),
    RunCompleted.type: _event("end", "", "finish_reason", "usage", "cost", "structured_output"),
    RunFailed.type: _event("error", "message", "code", "retryable"),
    RunCancelled.type: _event("cancelled", "reason", "by"),
}
