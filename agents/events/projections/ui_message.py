"""A UI message as the AI SDK's own reader builds it of the chunks: for reloading a history."""

from __future__ import annotations

from typing import Any

from agents.events.projections.ui_dialect import Chunk

Part = dict[str, Any]


class UiMessage:
    """An assistant message, made of chunks in their order. `parts` and `metadata` are its own.

    What a model call left that was made again is not in it.
    """

    def __init__(self, message_id: str) -> None:
        self.id = message_id
        self.parts: list[Part] = []
        self.metadata: dict[str, Any] = {}
        self._active: dict[tuple[str, str], Part] = {}

    def add(self, chunk: Chunk) -> None:
        kind: str = chunk["type"]
        self.metadata |= chunk.get("messageMetadata", {})
        if kind == "start-step":
            self.parts.append({"type": "step-start"})
        elif kind.startswith("data-"):
            self._add_data(chunk)
        elif kind.startswith("tool-"):
            self._add_to_call(kind, chunk)
        elif kind.startswith(("text-", "reasoning-")):
            self._add_to_part(chunk)

    def as_dict(self) -> dict[str, Any]:
        """`id, role, parts, metadata`."""
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
            self._active[kind, chunk["id"]] = part
            self.parts.append(part)
        elif what == "delta":
            self._active[kind, chunk["id"]]["text"] += chunk["delta"]
        else:
            self._active.pop((kind, chunk["id"]))["state"] = "done"

    def _add_to_call(self, kind: str, chunk: Chunk) -> None:
        if kind == "tool-input-start":
            self._begin_call(chunk, "input-streaming")
            return
        if kind == "tool-input-available":
            part = self._call(chunk["toolCallId"], since=self._step_start())
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
        elif kind == "tool-output-available":
            call |= {"state": "output-available", "output": chunk["output"]}
        elif kind == "tool-output-error":
            call |= {"state": "output-error", "errorText": chunk["errorText"]}
        elif kind == "tool-output-denied":
            call["state"] = "output-denied"
        approval = call.get("approval")
        if approval is not None and kind.startswith("tool-output-"):
            # The types want to know it, and no chunk of version 6 says it.
            approval.setdefault("approved", kind != "tool-output-denied")

    def _answer(self, chunk: Chunk) -> None:
        for part in self.parts:
            approval = part.get("approval")
            if approval is not None and approval["id"] == chunk["approvalId"]:
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
        self.parts.append(part)
        return part

    def _call(self, call_id: str, since: int = 0) -> Part | None:
        for part in reversed(self.parts[since:]):
            if part.get("toolCallId") == call_id:
                return part
        return None

    def _add_data(self, chunk: Chunk) -> None:
        if chunk["type"] == "data-step-reset":
            del self.parts[self._step_start() :]
            return
        for part in self.parts:
            if part["type"] == chunk["type"] and part.get("id") == chunk["id"]:
                part["data"] = chunk["data"]
                return
        self.parts.append(dict(chunk))

    def _step_start(self) -> int:
        """The place after the last beginning of a step."""
        places = (at for at, part in enumerate(self.parts) if part["type"] == "step-start")
        return max(places, default=-1) + 1
