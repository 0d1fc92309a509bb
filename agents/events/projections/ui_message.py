"""A UI message built from chunks as by the AI SDK's own client, to reload a history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

Chunk = dict[str, Any]


class Dialect(Protocol):
    """The differences between the versions."""

    version: int
    stops_for_approvals: bool
    """Whether a response ends with a request for approval, which the client answers."""

    def approval_requested(self, approval: Approval) -> list[Chunk]: ...

    def approval_decided(self, approval: Approval) -> list[Chunk]: ...

    def call_denied(self, call_id: str, reason: str, approval: Approval | None) -> list[Chunk]: ...


@dataclass(slots=True)
class Approval:
    """A request for approval. `data` is that of its event."""

    run_id: str
    data: dict[str, Any]
    of_message: bool
    """Whether it is about a call of the message, not about a budget or a subagent's call."""
    decision: str = ""
    reason: str = ""
    by: str = ""

    @property
    def id(self) -> str:
        return str(self.data["approval_id"])

    @property
    def call_id(self) -> str:
        return str(self.data["call_id"])

    @property
    def approved(self) -> bool:
        return self.decision in ("approve", "edit", "respond")


def call_error(call_id: str, text: str) -> Chunk:
    return {"type": "tool-output-error", "toolCallId": call_id, "errorText": text}


def approval_data(approval: Approval) -> Chunk:
    """Return a request as a data part, for decisions over REST.

    A later part with the same id replaces it.
    """
    data = approval.data
    told = {
        "approvalId": approval.id,
        "runId": approval.run_id,
        "toolCallId": data["call_id"],
        "toolName": data["tool"],
        "input": data["input"],
        "kind": data["kind"],
        "prompt": data["prompt"],
        "digest": data["digest"],
        "allowedDecisions": data["allowed_decisions"],
        "expiresAt": data["expires_at"],
        "decision": approval.decision,
        "reason": approval.reason,
        "by": approval.by,
    }
    known = {name: value for name, value in told.items() if value is not None}
    return {"type": "data-tool-approval", "id": approval.id, "data": known}


@dataclass(slots=True)
class OpenParts:
    """The parts that have started and not ended. A kind is `text` or `reasoning`."""

    _sent: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The sent pieces of each part, by kind and id."""

    def started(self, kind: str, data: dict[str, Any]) -> list[Chunk]:
        self._sent[kind, data["part_id"]] = []
        return [{"type": f"{kind}-start", "id": data["part_id"]}]

    def delta(self, kind: str, data: dict[str, Any]) -> list[Chunk]:
        part_id, text = data["part_id"], data["text"]
        chunks = [] if (kind, part_id) in self._sent else self.started(kind, data)
        self._sent[kind, part_id].append(text)
        return [*chunks, {"type": f"{kind}-delta", "id": part_id, "delta": text}]

    def completed(self, kind: str, data: dict[str, Any]) -> list[Chunk]:
        """Return the rest of the whole text, and the part's end."""
        part_id, text = data["part_id"], data["text"]
        chunks = [] if (kind, part_id) in self._sent else self.started(kind, data)
        sent = "".join(self._sent.pop((kind, part_id)))
        end = {"type": f"{kind}-end", "id": part_id}
        if not text.startswith(sent):
            # The stored text differs from the sent pieces: end their part and send the whole text.
            chunks += [end, {"type": f"{kind}-start", "id": part_id}]
            sent = ""
        if rest := text[len(sent) :]:
            chunks.append({"type": f"{kind}-delta", "id": part_id, "delta": rest})
        return [*chunks, end]

    def close(self) -> list[Chunk]:
        """End all parts."""
        chunks = [{"type": f"{kind}-end", "id": part_id} for kind, part_id in self._sent]
        self._sent.clear()
        return chunks


Part = dict[str, Any]


class UiMessage:
    """An assistant message, made of chunks in their order.

    If a model call is made again, the parts of the earlier attempt are removed. Call `settle`
    before you read `parts`.
    """

    def __init__(self, message_id: str) -> None:
        self.id = message_id
        self.parts: list[Part] = []
        self.metadata: dict[str, Any] = {}
        self._active: dict[tuple[str, str], tuple[Part, list[str]]] = {}
        self._step_start = 0
        """The position after the start of the current step."""
        # Positions of parts, since a message may have ten thousand of them.
        self._calls: dict[str, list[int]] = {}
        self._data: dict[tuple[str, str], int] = {}
        self._approvals: dict[str, Part] = {}

    def add(self, chunk: Chunk) -> None:
        kind: str = chunk["type"]
        if chunk.get("transient"):
            return  # for the moment only: clients do not add it to the message
        self.metadata |= chunk.get("messageMetadata", {})
        if kind == "start-step":
            self.parts.append({"type": "step-start"})
            self._step_start = len(self.parts)
        elif kind.startswith("data-"):
            self._add_data(chunk)
        elif kind.startswith("tool-"):
            self._add_to_call(kind, chunk)
        elif kind.startswith(("text-", "reasoning-")):
            self._add_to_part(chunk)

    def settle(self) -> None:
        """Set the present text of parts that have not ended."""
        for part, pieces in self._active.values():
            part["text"] = "".join(pieces)

    def as_dict(self) -> dict[str, Any]:
        """Return `id, role, parts, metadata`."""
        return {
            "id": self.id,
            "role": "assistant",
            "parts": self.parts,
            "metadata": self.metadata,
        }

    def _add_to_part(self, chunk: Chunk) -> None:
        kind, what = chunk["type"].split("-")
        if what == "start":
            part = {"type": kind, "text": "", "state": "streaming"}
            self._active[kind, chunk["id"]] = part, []
            self.parts.append(part)
        elif what == "delta":
            self._active[kind, chunk["id"]][1].append(chunk["delta"])
        else:
            part, pieces = self._active.pop((kind, chunk["id"]))
            part |= {"text": "".join(pieces), "state": "done"}

    def _add_to_call(self, kind: str, chunk: Chunk) -> None:
        if kind == "tool-input-start":
            self._begin_call(chunk, "input-streaming")
            return
        if kind == "tool-input-available":
            part = self._call(chunk["toolCallId"], since=self._step_start)
            part = part or self._begin_call(chunk, "input-available")
            part |= {"state": "input-available", "input": chunk["input"]}
            return
        if kind == "tool-approval-response":
            self._answer(chunk)
            return
        call = self._call(chunk["toolCallId"])
        if call is None:
            return
        if kind == "tool-approval-request":
            call |= {"state": "approval-requested", "approval": {"id": chunk["approvalId"]}}
            self._approvals[chunk["approvalId"]] = call
        elif kind == "tool-output-available":
            call |= {"state": "output-available", "output": chunk["output"]}
        elif kind == "tool-output-error":
            call |= {"state": "output-error", "errorText": chunk["errorText"]}
        elif kind == "tool-output-denied":
            call["state"] = "output-denied"
        approval = call.get("approval")
        if approval is not None and kind.startswith("tool-output-"):
            # The SDK's types require it, but no chunk of version 6 contains it.
            approval.setdefault("approved", kind != "tool-output-denied")

    def _answer(self, chunk: Chunk) -> None:
        part = self._approvals.get(chunk["approvalId"])
        if part is None or part["approval"]["id"] != chunk["approvalId"]:
            return
        approval = part["approval"]
        part["state"] = "approval-responded"
        approval["approved"] = chunk["approved"]
        if "reason" in chunk:
            approval["reason"] = chunk["reason"]

    def _begin_call(self, chunk: Chunk, state: str) -> Part:
        part = {
            "type": f"tool-{chunk['toolName']}",
            "toolCallId": chunk["toolCallId"],
            "state": state,
        }
        self._calls.setdefault(chunk["toolCallId"], []).append(len(self.parts))
        self.parts.append(part)
        return part

    def _call(self, call_id: str, since: int = 0) -> Part | None:
        places = self._calls.get(call_id)
        return self.parts[places[-1]] if places and places[-1] >= since else None

    def _add_data(self, chunk: Chunk) -> None:
        if chunk["type"] == "data-step-reset":
            self._drop_step()
            return
        place = self._data.setdefault((chunk["type"], chunk["id"]), len(self.parts))
        if place < len(self.parts):
            self.parts[place]["data"] = chunk["data"]
        else:
            self.parts.append(dict(chunk))

    def _drop_step(self) -> None:
        """Remove the parts of the current step."""
        for part in self.parts[self._step_start :]:
            if (call_id := part.get("toolCallId")) is not None:
                self._calls[call_id].pop()
            elif part["type"].startswith("data-"):
                del self._data[part["type"], part["id"]]
        del self.parts[self._step_start :]
