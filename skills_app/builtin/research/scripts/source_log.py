"""Read and check the log of sources, a JSON file with one entry for each source."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from outcome import UNREADABLE, Stop, input_file

FIELDS = ("id", "title", "where", "accessed", "kind", "confidence")
"""The fields of an entry. `where` is a URL, a path or words; `accessed` is a day, YYYY-MM-DD."""
CONFIDENCE = ("low", "medium", "high")
KINDS = ("file", "web", "person", "tool", "other")
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


def read_log(path: str) -> list[dict[str, Any]]:
    """Return the entries of the log. Raises `Stop` if the file is not a log."""
    try:
        log = json.loads(input_file(path).read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Stop(f"{path} is not valid JSON: {error}.", UNREADABLE) from None
    entries = log.get("sources") if isinstance(log, dict) else None
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise Stop(
            f'{path} must contain {{"sources": […]}}. Create it with log_source.py.', UNREADABLE
        )
    return entries


def problems_of(entries: list[dict[str, Any]]) -> list[str]:
    """Return the problems of the entries, including quotes that are not in their file."""
    problems = []
    ids = [str(entry.get("id")) for entry in entries]
    problems += [
        f"{each} is in the log twice." for each in sorted({i for i in ids if ids.count(i) > 1})
    ]
    for entry, name in zip(entries, ids, strict=True):
        lacking = [field for field in FIELDS if not str(entry.get(field) or "").strip()]
        if lacking:
            problems.append(f"{name}: {', '.join(lacking)} is empty.")
        if entry.get("accessed") and not _DAY.fullmatch(str(entry["accessed"])):
            problems.append(f"{name}: accessed must be a day such as 2024-05-01.")
        if entry.get("confidence") and entry["confidence"] not in CONFIDENCE:
            problems.append(f"{name}: confidence must be one of {', '.join(CONFIDENCE)}.")
        if entry.get("kind") == "file":
            problems += _quote_problems(name, entry)
    return problems


def _quote_problems(name: str, entry: dict[str, Any]) -> list[str]:
    file = Path(str(entry.get("where")))
    if not file.is_file():
        return [f"{name}: there is no file {file}."]
    quote = str(entry.get("quote") or "")
    if not quote:
        return []
    # Skip a PDF or another binary file, which cannot be searched.
    text = file.read_bytes()
    if b"\0" in text[:4096] or text.startswith(b"%PDF"):
        return [f"{name}: the quote cannot be looked up in {file}: log the extracted text instead."]
    if _plain(quote) not in _plain(text.decode("utf-8", "replace")):
        return [f"{name}: the quote is not in {file}."]
    return []


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
