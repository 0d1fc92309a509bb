"""Texts and reasoning of a UI message stream, which come in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agents.events.projections.ui_dialect import Chunk


@dataclass(slots=True)
class OpenParts:
    """Those that have begun and not ended. A kind is `text` or `reasoning`."""

    _sent: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The pieces that were sent of each, by kind and id."""

    def started(self, kind: str, data: dict[str, Any]) -> list[Chunk]:
        self._sent[kind, data["part_id"]] = []
        return [{"type": f"{kind}-start", "id": data["part_id"]}]

    def delta(self, kind: str, data: dict[str, Any]) -> list[Chunk]:
        part_id, text = data["part_id"], data["text"]
        chunks = [] if (kind, part_id) in self._sent else self.started(kind, data)
        self._sent[kind, part_id].append(text)
        return [*chunks, {"type": f"{kind}-delta", "id": part_id, "delta": text}]

    def completed(self, kind: str, data: dict[str, Any]) -> list[Chunk]:
        """What was not sent of the whole text yet, and its end."""
        part_id, text = data["part_id"], data["text"]
        chunks = [] if (kind, part_id) in self._sent else self.started(kind, data)
        sent = "".join(self._sent.pop((kind, part_id)))
        end = {"type": f"{kind}-end", "id": part_id}
        if not text.startswith(sent):
            # What was sent is not what is stored: it stands, and the whole comes after it.
            chunks += [end, {"type": f"{kind}-start", "id": part_id}]
            sent = ""
        if rest := text[len(sent) :]:
            chunks.append({"type": f"{kind}-delta", "id": part_id, "delta": rest})
        return [*chunks, end]

    def close(self) -> list[Chunk]:
        """End all of them."""
        chunks = [{"type": f"{kind}-end", "id": part_id} for kind, part_id in self._sent]
        self._sent.clear()
        return chunks
