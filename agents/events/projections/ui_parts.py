"""Text and reasoning of a UI message stream, which arrive in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agents.events.projections.ui_dialect import Chunk


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
