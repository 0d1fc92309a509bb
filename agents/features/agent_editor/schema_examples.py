"""Output schemas to start from."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_noop

EXAMPLES: dict[str, dict[str, Any]] = {
    gettext_noop("A verdict with its reason"): {
        "type": "object",
        "properties": {
            "verdict": {"enum": ["accept", "reject", "unclear"]},
            "reason": {"type": "string", "description": "One or two sentences."},
        },
        "required": ["verdict", "reason"],
        "additionalProperties": False,
    },
    gettext_noop("A list of items"): {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "title": {"type": "string"},
                        "date": {"type": "string", "format": "date"},
                        "amount": {"type": "number", "minimum": 0},
                    },
                    "required": ["title"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["items"],
        "additionalProperties": False,
    },
    gettext_noop("A text with its sources"): {
        "type": "object",
        "properties": {
            "answer": {"type": "string"},
            "sources": {
                "type": "array",
                "items": {"type": "string", "description": "The path of a file, or an address."},
                "minItems": 1,
            },
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["answer", "sources"],
        "additionalProperties": False,
    },
}
"""By the name for people. Each is a supported schema."""
