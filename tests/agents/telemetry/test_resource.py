"""The attributes of the process that sends spans."""

from __future__ import annotations

import os

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agents.telemetry.otlp import SpanQueue, vel_version
from agents.telemetry.spans import Span


def attributes() -> dict[str, object]:
    kept = InMemorySpanExporter()
    spans = SpanQueue(exporter=kept)
    spans.put(Span("chat", 1, 2, None, 1_000, 2_000, {}))
    assert spans.flush(20)
    [span] = kept.get_finished_spans()
    return dict(span.resource.attributes)


def test_the_environment_replaces_attributes_of_vel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=web-1,peer.service.name=other")
    found = attributes()
    assert (found["service.name"], found["host.name"]) == ("vel", "web-1")
    assert (found["service.version"], found["process.pid"]) == (vel_version(), os.getpid())

    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=tests")
    assert attributes()["service.name"] == "tests"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "first")
    assert attributes()["service.name"] == "first"
