"""The middleware of this feature."""

from __future__ import annotations

from agents.features.guardrails.retries import ModelRetries, ToolRetries
from agents.features.guardrails.stuck import StuckMiddleware

MIDDLEWARE = (StuckMiddleware(), ModelRetries(), ToolRetries())
