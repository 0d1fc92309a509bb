"""Turn hits of the checks into findings, merged and limited in number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Severity = Literal["note", "warning", "danger"]

RANK: dict[str, int] = {"note": 0, "warning": 1, "danger": 2}
MAX_FINDINGS = 200
MAX_MATCH = 2_000
"""The maximum length of a finding in characters. Longer matches, such as base64, are cut."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One suspicious part of the content: `content[start:end] == match`.

    `description` tells the reviewer why the part is shown.
    """

    pattern: str
    match: str
    description: str
    severity: Severity
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A finding without its text. `start` and `end` are character offsets in the examined text."""

    pattern: str
    description: str
    severity: Severity
    start: int
    end: int


def findings_of(content: str, hits: list[Hit]) -> list[Finding]:
    """Return `hits` as at most MAX_FINDINGS findings, sorted by start.

    Overlapping hits of one rule become one finding. If there are too many findings, those with the
    lowest severity are omitted, and of these the last ones in the text. The last finding then
    reports the number of omitted ones and the highest severity among them.
    """
    merged = _merge(hits)
    left_out: list[Hit] = []
    if len(merged) > MAX_FINDINGS:
        by_weight = sorted(merged, key=lambda hit: (-RANK[hit.severity], hit.start))
        left_out = by_weight[MAX_FINDINGS - 1 :]
        merged = by_weight[: MAX_FINDINGS - 1]
    merged.sort(key=lambda hit: (hit.start, hit.end, hit.pattern))
    found = [_cut(content, hit) for hit in merged]
    if left_out:
        worst = max(left_out, key=lambda hit: RANK[hit.severity])
        found.append(
            Finding(
                "more-findings",
                "",
                f"{len(left_out)} more findings are not listed",
                worst.severity,
                len(content),
                len(content),
            )
        )
    return found


def _merge(hits: list[Hit]) -> list[Hit]:
    merged: list[Hit] = []
    last: dict[str, int] = {}
    for hit in sorted(hits, key=lambda hit: (hit.start, hit.end)):
        index = last.get(hit.pattern)
        if index is not None and hit.start < merged[index].end:
            held = merged[index]
            worse = hit if RANK[hit.severity] > RANK[held.severity] else held
            merged[index] = replace(
                held,
                end=max(held.end, hit.end),
                severity=worse.severity,
                description=worse.description,
            )
        else:
            last[hit.pattern] = len(merged)
            merged.append(hit)
    return merged


def _cut(content: str, hit: Hit) -> Finding:
    end = min(hit.end, hit.start + MAX_MATCH)
    return Finding(
        hit.pattern, content[hit.start : end], hit.description, hit.severity, hit.start, end
    )
