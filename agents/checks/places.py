"""Django system checks of the default language model and the directories in the settings."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from agents.kernel.lazy_modules import lazy_modules
from agents.settings import ModelSettings, ScriptSettings

with lazy_modules:
    # Models can be imported once Django is set up.
    from agents.services.agent_definitions import settings_places


@register()
def check_places(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the default provider, its model and the directory of scripts in the settings."""
    found: list[CheckMessage] = []
    try:
        ModelSettings.now()
        ScriptSettings.now()
    except ImproperlyConfigured:
        return []  # reported by `check_vel_settings`
    if problem := settings_places.default_model_problem():
        found.append(Error(problem, id="vel.E015"))
    if problem := settings_places.scripts_directory_problem():
        found.append(Error(problem, id="vel.E017"))
    return found
