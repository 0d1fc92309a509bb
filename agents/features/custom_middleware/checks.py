"""A system check of the setting of custom middleware."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from agents.features.custom_middleware.settings import MiddlewareSettings
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # The import loads pydantic (0.2 s), and the supervisor runs no checks.
    from agents.features.custom_middleware import registry

_HINT = (
    "MIDDLEWARE of VEL is a list of dotted paths (VEL_MIDDLEWARE: with commas); PYTHONPATH says "
    "where the modules are. docs/guides/middleware.md has examples."
)


@register(Tags.security)
def check_middleware(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report paths in `VEL["MIDDLEWARE"]` that cannot be used."""
    try:
        MiddlewareSettings.now()
    except ImproperlyConfigured:
        return []  # `check_vel_settings` reports it
    try:
        registry.registered()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint=_HINT, id="vel.E041")]
    return []


def _problems() -> list[str]:
    return [f"{problem.msg} {problem.hint}" for problem in check_middleware(None)]


OWN_PROCESS = [_problems]
