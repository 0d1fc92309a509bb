"""A Django system check of a project's own tools. Reports tools that cannot be used."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from agents.kernel.lazy_modules import lazy_modules
from agents.settings import ToolSettings

with lazy_modules:
    # The tools take 0.25 s, and most commands of `vel` run no checks.
    from agents.middleware import registry
    from agents.middleware.custom import registered


_HINT = (
    'VEL["TOOLS"] is a list of dotted paths (VEL_TOOLS: with commas); see docs/guides/embedding.md.'
)


@register(Tags.security)
def check_tools(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that each path in `VEL["TOOLS"]` is a tool with a unique name.

    The name must not start with a reserved prefix.
    """
    try:
        ToolSettings.now()
    except ImproperlyConfigured:
        return []  # reported by `check_vel_settings`
    try:
        names = registered.registered_tools().keys()
        taken = sorted(names & registry.built_in_tools().keys())
    except ImproperlyConfigured as error:
        return [Error(str(error), hint=_HINT, id="vel.E014")]
    if taken:
        message = f'settings.VEL["TOOLS"]: {taken[0]!r} is the name of one of Vel\'s own tools.'
        return [Error(message, hint=_HINT, id="vel.E014")]
    for item in registry.installed_middleware():
        reserved = sorted(name for name in names if name.startswith(item.tool_prefix))
        if item.tool_prefix and reserved:
            message = (
                f'settings.VEL["TOOLS"]: {reserved[0]!r} starts with the prefix of the tools of '
                f"{item.tool_source}. Choose another name with @tool(name=…)."
            )
            return [Error(message, hint=_HINT, id="vel.E014")]
    return []
