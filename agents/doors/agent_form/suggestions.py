"""The names that inputs suggest."""

from __future__ import annotations

from agents.middleware.registry import known_tool_names
from agents.providers.registry import PROVIDERS


def suggested(names: str) -> list[str]:
    """Return the names of `agents.kernel.options.Suggest`, sorted."""
    return sorted(known_tool_names() if names == "tools" else PROVIDERS)
