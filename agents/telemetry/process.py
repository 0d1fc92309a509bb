"""The telemetry of this process, created on first use and after a change of the settings."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass

from django.core.signals import setting_changed

from agents.kernel.lazy_modules import lazy_modules
from agents.settings import MetricsSettings
from agents.telemetry.counters import Counters

with lazy_modules:
    from agents.telemetry import otlp  # takes 0.3 s, and requires an extra


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Instruments:
    """The telemetry of a process. `spans` and `counters` are None when disabled."""

    spans: otlp.SpanQueue | None
    counters: Counters | None
    content: bool


_lock = threading.Lock()
_made: list[Instruments | None] = []


def instruments() -> Instruments | None:
    """Return the instruments of this process, or None. Takes no lock after the first call."""
    if _made:
        return _made[0]
    with _lock:
        if not _made:
            _made.append(_make())
        return _made[0]


def counters() -> Counters | None:
    found = instruments()
    return found.counters if found is not None else None


def forget_instruments() -> None:
    """Read the settings again on the next call of `instruments`."""
    with _lock:
        _made.clear()


def _make() -> Instruments | None:
    numbers = Counters() if metrics_wanted() else None
    spans = _span_queue(numbers) if traces_wanted() else None
    if numbers is None and spans is None:
        return None
    return Instruments(spans, numbers, content_wanted())


def _span_queue(numbers: Counters | None) -> otlp.SpanQueue | None:
    try:
        queue = otlp.SpanQueue
    except ImportError as error:
        # The system check vel.W040 reports it at each start, too.
        logger.error("no traces are sent: %s; install vel[otel]", error)
        return None

    def count(outcome: str, number: int) -> None:
        if numbers is not None:
            numbers.add("vel_spans_total", outcome, amount=number)

    try:
        return queue(count)
    except Exception:  # an invalid OTEL_ variable must not stop runs
        logger.exception("no traces are sent: the exporter could not be made")
        return None


def _settings_changed(*, setting: str, **kwargs: object) -> None:
    if setting == "VEL":
        forget_instruments()


setting_changed.connect(_settings_changed, dispatch_uid="agents.telemetry.process")


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
