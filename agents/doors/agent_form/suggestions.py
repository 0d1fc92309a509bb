"""The names that inputs suggest."""

from __future__ import annotations

from agents.kernel.features import feature_modules
from agents.middleware.registry import known_tool_names
from agents.models import Agent
from agents.providers.registry import PROVIDERS


def suggested(names: str, agent: Agent | None = None) -> list[str]:
    """Return the names of `agents.kernel.options.Suggest`, sorted.

    Features add names that depend on the agent, in the mapping `form_fields.SUGGESTIONS`. These
    names are left out without an agent.
    """
    if names == "tools":
        return sorted(known_tool_names())
    if names == "providers":
        return sorted(PROVIDERS)
    if agent is None:
        return []
    return sorted(
        name
        for _, module in feature_modules("form_fields")
        if names in getattr(module, "SUGGESTIONS", {})
        for name in module.SUGGESTIONS[names](agent)
    )
