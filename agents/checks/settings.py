"""A Django system check of the `VEL` dictionary."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from agents.conf import vel_settings


@register()
def check_vel_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The VEL dictionary holds only keys that mean something."""
    try:
        vel_settings()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="vel.E008")]
    return []
