"""Convert the events of a Responses API stream to a `Reply`."""

from __future__ import annotations

from typing import Any

from agents.providers.base import Block, ModelEvent, PartStarted, Reply
from agents.providers.errors import malformed
from agents.providers.openai.errors import event_error
from agents.providers.openai.reply import ReplyBlocks, as_text, usage_of

_STOP_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
_TEXT_DELTAS = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT_DELTAS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
Place = int | str
"""The item of an event: its index, or its id if a server omits the index."""


class ResponsesReplyBuilder:
    """Collects the events of one reply. `reply` is set after the last one."""

    last_event = "response.completed"

    def __init__(self, origin: str, used_ids: set[str]) -> None:
        self.reply: Reply | None = None
        self._origin = origin
        self._parts = ReplyBlocks(used_ids)
        self._open: dict[Place, str] = {}
        """The types of items that have started and not ended."""
        self._started: dict[Place, PartStarted] = {}
        self._part_of_item: dict[Place, object] = {}
        self._refused = False
        self._model = ""

    def add(self, event: dict[str, Any]) -> list[ModelEvent]:
        """Add one event; return events for watchers.

        Raises `ProviderError` for an error and for invalid events.
        """
        try:
            return [part for part in self._add(event) if part is not None]
        except (KeyError, TypeError, AttributeError) as error:
            raise malformed(f"{error!r} in event {str(event)[:200]}") from error

    def end(self, *, marked: bool) -> None:
        """End the stream. Without its last event there is no reply."""

    def _add(self, event: dict[str, Any]) -> list[ModelEvent | None]:
        kind = event.get("type")
        if kind in _TEXT_DELTAS:
            self._refused |= kind == "response.refusal.delta"
            return self._delta(event, "text", event.get("content_index", 0))
        if kind in _THOUGHT_DELTAS:
            part = event.get("summary_index", event.get("content_index", 0))
            return self._delta(event, "reasoning", part)
        match kind:
            case "response.function_call_arguments.delta":
                return [self._parts.add(self._started[_place(event)], event["delta"])]
            case "response.output_item.added":
                return self._begin(_place(event), event["item"])
            case "response.output_item.done":
                return self._done(_place(event), event["item"])
            case "response.created":
                self._model = event["response"].get("model") or ""
            case "response.failed":
                raise event_error(event["response"].get("error") or {})
            case "error":
                raise event_error(event["error"] if event.get("error") else event)
            case "response.completed" | "response.incomplete":
                self._finish(event["response"])
            case None if event.get("error"):
                raise event_error(event["error"])
        return []

    def _begin(self, index: Place, item: Block) -> list[ModelEvent | None]:
        if index in self._open:
            raise KeyError(f"item {index} begins twice")
        self._open[index] = item["type"]
        if item["type"] == "function_call":
            self._started[index] = self._parts.start_call(item.get("call_id"), item["name"])
            return [self._started[index]]
        if item["type"] == "message" and item.get("phase"):
            self._parts.put(
                {"type": "redacted_thinking", "origin": self._origin, "phase": item["phase"]}
            )
        return []

    def _delta(self, event: dict[str, Any], kind: str, part: object) -> list[ModelEvent | None]:
        index = _place(event)
        if index not in self._open:
            raise KeyError(f"item {index} has not begun")
        found: list[ModelEvent | None] = []
        started = self._started.get(index)
        if started is None:
            started = self._start(index, kind)
            found.append(started)
        elif self._part_of_item.get(index) != part:  # another paragraph of the same item
            found.append(self._parts.add(started, "\n\n"))
        self._part_of_item[index] = part
        found.append(self._parts.add(started, event["delta"]))
        return found

    def _start(self, index: Place, kind: str) -> PartStarted:
        made = self._parts.start_text() if kind == "text" else self._parts.start_thoughts()
        self._started[index] = made
        return made

    def _done(self, index: Place, item: Block) -> list[ModelEvent | None]:
        """End an item: add text that no delta contained, and data that is sent back."""
        kind = self._open.pop(index)
        found: list[ModelEvent | None] = []
        if kind == "function_call":
            found.append(self._rest(index, as_text(item.get("arguments"))))
        elif kind == "message" and index not in self._started:
            text = "".join(
                each.get("text") or each.get("refusal") or "" for each in item["content"]
            )
            self._refused |= any(each["type"] == "refusal" for each in item["content"])
            if text:
                found += [self._start(index, "text"), self._rest(index, text)]
        elif kind == "reasoning":
            self._keep(index, item)
        return found

    def _rest(self, index: Place, whole: str) -> ModelEvent | None:
        started = self._started[index]
        came = self._parts.text_of(started)
        return self._parts.add(started, whole) if not came else None

    def _keep(self, index: Place, item: Block) -> None:
        """Keep reasoning to send it back, if it is complete and the server can read it."""
        started = self._started.get(index)
        if started is None:
            texts = [each["text"] for each in item.get("summary") or item.get("content") or ()]
            started = self._start(index, "reasoning")
            self._parts.add(started, "\n\n".join(texts))
        block = self._parts.blocks[started.index]
        block["origin"] = self._origin
        readable = item.get("encrypted_content") or item.get("content")
        if readable and item.get("status") != "incomplete":
            block["item"] = {name: value for name, value in item.items() if value is not None}

    def _finish(self, response: dict[str, Any]) -> None:
        if self._open:
            raise malformed(f"the response ends while item {min(self._open, key=str)} is open")
        details = response.get("incomplete_details") or {}
        stop_reason = _STOP_REASONS.get(details.get("reason") or "")
        if self._refused:
            stop_reason = "refusal"
        if stop_reason is None:
            stop_reason = "tool_use" if self._parts.has_calls else "end_turn"
        usage = usage_of(response.get("usage"), "input", "output")
        model = response.get("model") or self._model
        self.reply = self._parts.reply(stop_reason, usage, model)


def _place(event: dict[str, Any]) -> Place:
    index = event.get("output_index")
    if isinstance(index, int):
        return index
    found = event["item"]["id"] if "item" in event else event["item_id"]
    if not isinstance(found, str):
        raise TypeError("an item's id is a text")
    return found
