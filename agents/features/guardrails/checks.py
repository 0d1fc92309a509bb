"""Django system checks of the settings of guardrails and hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from agents.features.guardrails.registry import guardrails, hook_calls
from agents.features.guardrails.settings import GuardSettings

_HINT = (
    "GUARDRAILS and HOOKS of VEL are lists of dotted paths (VEL_GUARDRAILS and VEL_HOOKS: with "
    "commas); modules must be on PYTHONPATH. docs/guides/guardrails.md has an example."
)


@register(Tags.security)
def check_guards(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report paths in `VEL["GUARDRAILS"]` and `VEL["HOOKS"]` that cannot be used."""
    try:
        GuardSettings.now()
    except ImproperlyConfigured:
        return []  # `check_vel_settings` reports it
    return [*_problem(guardrails, "vel.E012"), *_problem(hook_calls, "vel.E013")]


def _problem(load: Callable[[], object], check_id: str) -> list[CheckMessage]:
    try:
        load()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint=_HINT, id=check_id)]
    return []


def _problems() -> list[str]:
    return [f"{problem.msg} {problem.hint}" for problem in check_guards(None)]


OWN_PROCESS = [_problems]
