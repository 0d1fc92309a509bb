"""Convert the events of a Chat Completions stream to a `Reply`."""

from __future__ import annotations

from typing import Any

from agents.providers.base import ModelEvent, PartStarted, Reply, Usage
from agents.providers.errors import malformed
from agents.providers.openai.errors import event_error
from agents.providers.openai.reply import ReplyBlocks, as_text, usage_of

END = b"[DONE]"
_THOUGHTS = ("reasoning_content", "reasoning")
"""Field names of thoughts in servers of open models. Thoughts go back under the same name."""
_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}


class ChatReplyBuilder:
    """Collects the events of one reply. `end` sets `reply`."""

    last_event = "[DONE]"

    def __init__(self, origin: str, used_ids: set[str]) -> None:
        self.reply: Reply | None = None
        self._origin = origin
        self._parts = ReplyBlocks(used_ids)
        self._text: PartStarted | None = None
        self._thoughts: PartStarted | None = None
        self._calls: dict[object, tuple[PartStarted, object]] = {}
        self._last_call: PartStarted | None = None
        self._refused = False
        self._stop_reason = ""
        self._usage = Usage()
        self._model = ""

    def add(self, event: dict[str, Any]) -> list[ModelEvent]:
        """Add one event; return events for watchers.

        Raises `ProviderError` for an error and for an invalid event.
        """
        if "choices" not in event and event.get("error"):
            error = event["error"]
            raise event_error(error if isinstance(error, dict) else {"message": str(error)})
        try:
            if event.get("usage"):
                self._usage = usage_of(event["usage"], "prompt", "completion")
            if isinstance(event.get("model"), str):
                self._model = event["model"] or self._model
            found: list[ModelEvent] = []
            for choice in event.get("choices") or ():
                if choice.get("index", 0) == 0:
                    found += self._delta(choice.get("delta") or {})
                    self._stop_reason = choice.get("finish_reason") or self._stop_reason
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise malformed(f"{error!r} in event {str(event)[:200]}") from error
        return found

    def end(self, *, marked: bool) -> None:
        """End the stream; `marked`: the server sent the end mark, which not every server does."""
        if marked or self._stop_reason:
            self.reply = self._finish()

    def _delta(self, delta: dict[str, Any]) -> list[ModelEvent]:
        found: list[ModelEvent | None] = []
        for field in _THOUGHTS:
            if delta.get(field):
                if self._thoughts is None:
                    own = {"origin": self._origin, "field": field}
                    self._thoughts = self._parts.start_thoughts(own)
                    found.append(self._thoughts)
                found.append(self._parts.add(self._thoughts, delta[field]))
                break
        for field in ("content", "refusal"):
            if delta.get(field):
                self._refused |= field == "refusal"
                if self._text is None:
                    self._text = self._parts.start_text()
                    found.append(self._text)
                found.append(self._parts.add(self._text, delta[field]))
        for call in delta.get("tool_calls") or ():
            found += self._call(call)
        return [event for event in found if event is not None]

    def _call(self, call: dict[str, Any]) -> list[ModelEvent | None]:
        function = call.get("function") or {}
        key, told = call.get("index"), call.get("id") or None
        if key is None:
            key = told or len(self._calls)
        started, known = self._calls.get(key, (None, None))
        if started is None and told is None and not function.get("name"):
            # Some servers give the index or the id only with the first piece of a call.
            started = self._last_call
        found: list[ModelEvent | None] = []
        # Some servers give every call the index 0.
        if started is None or (told is not None and known is not None and told != known):
            started = self._parts.start_call(told, function["name"])
            self._calls[key] = self._calls[told or key] = (started, told)
            self._last_call = started
            found.append(started)
        found.append(self._parts.add(started, as_text(function.get("arguments"))))
        return found

    def _finish(self) -> Reply:
        # Some servers send `stop` for a reply with calls.
        stop_reason = _STOP_REASONS.get(self._stop_reason)
        if self._refused:
            stop_reason = "refusal"
        if stop_reason is None:
            stop_reason = "tool_use" if self._parts.has_calls else "end_turn"
        return self._parts.reply(stop_reason, self._usage, self._model)
