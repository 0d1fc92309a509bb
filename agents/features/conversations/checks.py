"""A system check of the setting of titles."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from agents.features.conversations.settings import OF_AGENT, OFF, ConversationSettings
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Most installations name no model, and the supervisor needs no providers.
    from agents.features.conversations import title_model


@register()
def check_title_model(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report a value of `VEL["TITLE_MODEL"]` that names no model."""
    try:
        wanted = ConversationSettings.now().TITLE_MODEL
    except ImproperlyConfigured:
        return []  # `check_vel_settings` reports it
    if wanted in ("", OFF, OF_AGENT):
        return []
    try:
        title_model.parse_model(wanted)
    except ValueError as error:
        place = 'VEL_TITLE_MODEL (settings.VEL["TITLE_MODEL"])'
        return [Error(f"{place}: {error}", id="vel.E042")]
    return []
