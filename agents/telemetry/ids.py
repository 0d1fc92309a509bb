"""Ids of traces and spans, derived from ids of rows.

All processes that drive a part of a run or its subagents use the same trace and parents, without
communication.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class RemoteParent:
    """The span of another program that requested a run. `sampled`: that program records it."""

    trace_id: int
    span_id: int
    sampled: bool


def trace_id_of(root_run_id: str) -> int:
    """Return the 128-bit trace id of a run and its descendants."""
    return int.from_bytes(_digest("trace", root_run_id)[:16], "big") or 1


def span_id_of(*parts: object) -> int:
    """Return a 64-bit id for `parts`: the kind of span, and ids that identify it."""
    return int.from_bytes(_digest("span", *parts)[:8], "big") or 1


def _digest(*parts: object) -> bytes:
    # Parts are random ids, so the digest does not reveal them.
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()


def parse_traceparent(header: str) -> RemoteParent | None:
    """Parse W3C's `traceparent`. Returns None if it is invalid."""
    found = _TRACEPARENT.fullmatch(header.strip()[:200])
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return RemoteParent(trace_id, span_id, bool(int(found[4], 16) & 1))


def format_traceparent(parent: RemoteParent) -> str:
    return f"00-{parent.trace_id:032x}-{parent.span_id:016x}-{int(parent.sampled):02x}"
