"""The log of a demo run in a normal form that is always the same, one JSON text for each event."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from agents.events.registry import event_types

Row = tuple[str, str]
"""The type and the data, as JSON, of one event."""

_ID = re.compile(r"\b(?:01[0-9a-hjkmnp-tv-z]{24}|[0-9a-f]{64}|call_[0-9a-f]{16}_\d+)\b")
_LONGEST = 60


def normalised(rows: Iterable[Row]) -> list[str]:
    """Return one sorted line for each event of one run that is not streamed.

    The fields keep their order. Calls run side by side, so their events have no fixed order. Ids,
    and numbers in texts, are `#`; other numbers are 0; long texts are cut.
    """
    kept = [(kind, json.loads(data)) for kind, data in rows if event_types()[kind].persistent]
    return sorted(json.dumps([kind, _plain(data)], ensure_ascii=False) for kind, data in kept)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return _text(value)
    return 0 if type(value) in (int, float) else value


def _text(value: str) -> str:
    plain = re.sub(r"\d+", "#", _ID.sub("#", value))
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"
