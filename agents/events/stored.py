"""A stored event, and its formats for clients. Needs no Django."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One row of the log. `data_json` is the row's JSON text, passed on without being parsed."""

    run_id: str
    seq: int
    type: str
    ts: str
    """ISO 8601 in UTC with milliseconds, as 2026-01-31T12:00:00.123Z."""
    data_json: str

    @property
    def frame(self) -> str:
        """Return the event as the JSON text of a server frame."""
        return (
            f'{{"run_id":"{self.run_id}","seq":{self.seq},"type":"{self.type}",'
            f'"ts":"{self.ts}","data":{self.data_json}}}'
        )

    def as_dict(self) -> dict[str, Any]:
        """Return `run_id, seq, type, ts, data`, with the data parsed."""
        return {"run_id": self.run_id, **self.without_run()}

    def without_run(self) -> dict[str, Any]:
        """Return `seq, type, ts, data`: for answers that have the run's id once."""
        return {
            "seq": self.seq,
            "type": self.type,
            "ts": self.ts,
            "data": json.loads(self.data_json),
        }
