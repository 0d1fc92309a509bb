"""Tools from the operator's settings, which agents use by name in every process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from agents.custom.tool_spec import ToolSpec
from agents.middleware.base import Middleware, Tool
from agents.middleware.custom.calling import engine_tool
from agents.settings import ToolSettings
from agents.spec import AgentSpec


@lru_cache(maxsize=1)
def registered_tools() -> Mapping[str, ToolSpec]:
    """Return the tools of `VEL["TOOLS"]` by name. Raises `ImproperlyConfigured`."""
    found: dict[str, ToolSpec] = {}
    for path in ToolSettings.now().TOOLS:
        where = f'settings.VEL["TOOLS"]: {path}'
        try:
            tool = ToolSpec.from_function(import_string(path))
        except (Exception, SystemExit) as error:
            raise ImproperlyConfigured(
                f"{where} cannot be used ({type(error).__name__}: {error})."
            ) from error
        if tool.name in found:
            raise ImproperlyConfigured(
                f"{where} has the name {tool.name!r} of another tool. Choose another name with "
                "@tool(name=…)."
            )
        found[tool.name] = tool
    return found


class RegisteredMiddleware(Middleware):
    """Offers the operator's tools, only to agents that name them in `Agent.tools`."""

    name = "registered"
    profiles = frozenset({"full", "sandbox_only"})

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        if not spec.tools:
            return []
        known = registered_tools()
        return [engine_tool(known[name], of_settings=True) for name in spec.tools if name in known]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "VEL":
        registered_tools.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.middleware.custom.registered")
