"""Joined messages in the streams of the AI SDK and of Python programs."""

from __future__ import annotations

from typing import Any

from agents.events.catalogue.messages import MessageJoined

_FIELDS = ("step", "by", "files")


def joined_chunks(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a part `data-user-message` for the AI SDK."""
    part = {name: data[name] for name in ("text", *_FIELDS)}
    return [{"type": "data-user-message", "id": data["waiting_run_id"], "data": part}]


UI_CHUNKS = [(MessageJoined.type, joined_chunks)]
STREAM_EVENTS = [(MessageJoined.type, "message", "text", _FIELDS)]
