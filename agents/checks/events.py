"""Django system check of the event types that the installed apps declare."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from agents.events.registry import event_types


@register
def check_event_types(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that each class in a list `EVENTS` can be stored, with a unique type."""
    try:
        event_types()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="vel.E018")]
    return []
