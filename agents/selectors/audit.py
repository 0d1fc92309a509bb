"""Queries and CSV export of the audit log."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator

from django.db.models import Q, QuerySet

from agents.models import AuditEntry

COLUMNS = (
    "when",
    "who",
    "user_id",
    "door",
    "address",
    "credential",
    "action",
    "kind",
    "target_id",
    "target",
    "changes",
    "note",
)


def search_entries(entries: QuerySet[AuditEntry], words: str) -> QuerySet[AuditEntry]:
    """Return the entries that contain each of `words`, in actor, action, target or note.

    A word can also be the whole address, or the whole id of the target.
    """
    for word in words.split():
        entries = entries.filter(
            Q(actor__icontains=word)
            | Q(action__icontains=word)
            | Q(target__icontains=word)
            | Q(target_id=word)
            | Q(address=word)
            | Q(note__icontains=word)
        )
    return entries


def csv_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    """Yield the entries as lines of CSV, with the column names first.

    A cell that a spreadsheet could read as a formula starts with an apostrophe.
    """
    yield _line(COLUMNS)
    for entry in entries:
        yield _line(
            (
                entry.created_at.isoformat(),
                entry.actor,
                entry.actor_id,
                entry.door,
                entry.address,
                entry.credential,
                entry.action,
                entry.kind,
                entry.target_id,
                entry.target,
                json.dumps(entry.changes, ensure_ascii=False),
                entry.note,
            )
        )


def _line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(
        f"'{cell}" if cell.lstrip(" \n").startswith(("=", "+", "-", "@", "\t", "\r")) else cell
        for cell in cells
    )
    return out.getvalue()
