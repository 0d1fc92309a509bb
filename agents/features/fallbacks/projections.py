"""Fallbacks in the streams of the AI SDK and of Python programs."""

from __future__ import annotations

from typing import Any

from agents.features.fallbacks.events import ModelFallback

_FIELDS = ("step", "provider", "model", "code")


def fallback_chunks(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a part `data-model-fallback` for the AI SDK."""
    part_id = f"{data['step']}:{data['provider']}:{data['model']}"
    part = {name: data[name] for name in (*_FIELDS, "reason")}
    return [{"type": "data-model-fallback", "id": part_id, "data": part}]


UI_CHUNKS = [(ModelFallback.type, fallback_chunks)]
STREAM_EVENTS = [(ModelFallback.type, "fallback", "reason", _FIELDS)]
