"""Settings for operators."""

from typing import Annotated

from agents.kernel.settings import About, FeatureSettings, Secret


class MetricsSettings(FeatureSettings):
    """Metrics"""

    METRICS_TOKEN: Secret = ""
    """Clients that send it as `Authorization: Bearer` can read
    [`/metrics`](../operations/monitoring.md#metrics). Empty: no metrics are counted."""


class EventSettings(FeatureSettings):
    """The event log"""

    CHECK_EVENTS: Annotated[bool, About(variables=())] = False
    """Check the values of each event against the event catalogue before it is written."""
