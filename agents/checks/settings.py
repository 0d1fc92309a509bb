"""A Django system check of the dictionaries with Vel's settings."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from agents.kernel.settings import find_problems

_IDS = {"VEL_SKILLS": "vel.E009"}


@register()
def check_vel_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report unknown keys, wrong values and settings that two apps declare."""
    try:
        found = list(find_problems())
    except ImproperlyConfigured as error:
        return [Error(str(error), id="vel.E008")]
    return [Error(problem, id=_IDS.get(name, "vel.E008")) for name, problem in found]
