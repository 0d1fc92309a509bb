"""The enabled telemetry, from OpenTelemetry's variables and `settings.VEL`."""

from __future__ import annotations

import os

from agents.settings import MetricsSettings

_TRUE = frozenset({"1", "true", "yes", "on", "span_only", "span_and_event"})
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def traces_wanted() -> bool:
    """Return whether an endpoint for traces is set, and neither traces nor the SDK are disabled."""
    if not any(os.environ.get(name, "").strip() for name in _ENDPOINTS):
        return False
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() in _TRUE:
        return False
    return os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() in ("", "otlp")


def content_wanted() -> bool:
    """Return whether traces can contain messages, inputs and results."""
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    return os.environ.get(name, "").strip().lower() in _TRUE


def metrics_wanted() -> bool:
    """Return whether metrics are enabled."""
    return bool(MetricsSettings.now().METRICS_TOKEN)
