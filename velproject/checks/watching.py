"""System checks of metrics and traces."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from agents.settings import MetricsSettings
from agents.telemetry.process import traces_wanted

SHORTEST_TOKEN = 20


@register(Tags.security)
def check_metrics_token(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the token of the metrics, which is their only protection."""
    try:
        token = MetricsSettings.now().METRICS_TOKEN
    except ImproperlyConfigured:
        return []  # `check_vel_settings` reports this
    if not token or (len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()):
        return []
    return [
        Error(
            f"VEL_METRICS_TOKEN has {len(token)} characters. Expected {SHORTEST_TOKEN} or more "
            "ASCII characters: anybody who guesses it can read the server's metrics.",
            hint="Create one: openssl rand -hex 32",
            id="vel.E040",
        )
    ]


@register
def check_traces(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that Vel can send traces, if the settings request them."""
    if not traces_wanted() or can_send_traces():
        return []
    return [
        Warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed: no traces "
            "are sent.",
            hint="pip install 'vel[otel]', or set OTEL_TRACES_EXPORTER=none.",
            id="vel.W040",
        )
    ]


def can_send_traces() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
    except ModuleNotFoundError:
        return False
